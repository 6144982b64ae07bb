"""Calls about tasks, facts, sessions, turns, dreams, git changes and traces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.base import ClientBase, LazyModule, drop_none, quote_segment

if TYPE_CHECKING:
    from reverie.contracts import dreams as of_dreams
    from reverie.contracts import recall as of_recall
    from reverie.contracts import sessions as of_sessions
    from reverie.contracts.memories import git as of_git
    from reverie.contracts.memories import typed_memories as of_tasks
else:
    of_tasks = LazyModule("reverie.contracts.memories.typed_memories")
    of_dreams = LazyModule("reverie.contracts.dreams")
    of_git = LazyModule("reverie.contracts.memories.git")
    of_sessions = LazyModule("reverie.contracts.sessions")
    of_recall = LazyModule("reverie.contracts.recall")

Id = UUID | str


class ActivityCalls(ClientBase):
    """Calls about what agents do."""

    async def start_session(
        self,
        agent: str,
        *,
        project: str | None = None,
        user: str | None = None,
        branch: str | None = None,
        group: str | None = None,
        external_id: str | None = None,
        include_context: bool = True,
        context_shown: bool = False,
        compacted: bool = False,
    ) -> of_sessions.StartSessionResponse:
        """Starts a session; with the same `external_id` again, it goes on with that one.

        Sessions of a `group` share the scope `group/<group>`. With `context_shown`, the memories in
        its `context` count as given to the agent.
        """
        body = drop_none(
            agent=agent,
            project=project,
            user=user,
            branch=branch,
            group=group,
            external_id=external_id,
        )
        body |= {
            "include_context": include_context,
            "context_shown": context_shown,
            "compacted": compacted,
        }
        return await self.request(
            of_sessions.StartSessionResponse, "POST", "/v1/sessions/start", body=body
        )

    async def end_session(
        self, id: Id, *, summary: str | None = None
    ) -> of_sessions.EndSessionResponse:
        """Ends a session; its conversation is digested soon."""
        path = f"/v1/sessions/{quote_segment(id)}/end"
        return await self.request(
            of_sessions.EndSessionResponse, "POST", path, body=drop_none(summary=summary)
        )

    def list_sessions(
        self, *, agent: str | None = None, project: str | None = None
    ) -> AsyncIterator[of_sessions.SessionBody]:
        """The sessions whose turns the key may read, the newest first."""
        query = drop_none(agent=agent, project=project)
        return self.paginate(of_sessions.SessionPage, "/v1/sessions", query)

    async def append_turns(
        self, session: Id, turns: Sequence[Mapping[str, Any]]
    ) -> of_sessions.AppendTurnsResponse:
        """Adds up to 1000 turns: `role` and `content` each, and `at`, `tool`, `external_id`."""
        body = {"session": session, "turns": list(turns)}
        return await self.request(of_sessions.AppendTurnsResponse, "POST", "/v1/turns", body=body)

    def list_turns(self, session: Id) -> AsyncIterator[of_sessions.TurnBody]:
        """The turns of a session, in order."""
        return self.paginate(of_sessions.TurnPage, f"/v1/sessions/{quote_segment(session)}/turns")

    def replay_session(self, session: Id) -> AsyncIterator[of_sessions.ReplayStep]:
        """The turns of a session, in order, each with the memories recalled and made at it."""
        path = f"/v1/sessions/{quote_segment(session)}/replay"
        return self.paginate(of_sessions.ReplayPage, path)

    async def correct_memories(
        self,
        session: Id,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        diff: str | None = None,
    ) -> of_sessions.CorrectSessionResponse:
        """Corrects memories by the statements or changes of the completed turn."""
        body = drop_none(messages=messages, diff=diff)
        return await self.request(
            of_sessions.CorrectSessionResponse,
            "POST",
            f"/v1/sessions/{quote_segment(session)}/correct",
            body=body,
        )

    def list_tasks(
        self,
        *,
        scope: str | None = None,
        state: Sequence[str] | None = None,
        claimable: bool | None = None,
    ) -> AsyncIterator[of_tasks.TaskBody]:
        """The tasks that pass, the newest first."""
        query = drop_none(scope=scope, state=state, claimable=claimable)
        return self.paginate(of_tasks.TaskPage, "/v1/tasks", query)

    async def update_task(
        self,
        id: Id,
        state: Literal["todo", "doing", "blocked", "done"],
        *,
        agent: str | None = None,
    ) -> of_tasks.TaskChangeResponse:
        """Moves a task to another state."""
        body = drop_none(state=state, agent=agent)
        return await self.request(
            of_tasks.TaskChangeResponse, "PATCH", f"/v1/tasks/{quote_segment(id)}", body=body
        )

    async def claim_task(
        self, id: Id, *, agent: str | None = None, seconds: int = 900
    ) -> of_tasks.TaskChangeResponse:
        """Claims a task for a number of seconds; raises `conflict` if another agent has it."""
        body = drop_none(agent=agent, seconds=seconds)
        return await self.request(
            of_tasks.TaskChangeResponse, "POST", f"/v1/tasks/{quote_segment(id)}/claim", body=body
        )

    async def release_task(
        self, id: Id, *, agent: str | None = None
    ) -> of_tasks.TaskChangeResponse:
        """Gives a task back."""
        body = drop_none(agent=agent)
        return await self.request(
            of_tasks.TaskChangeResponse, "POST", f"/v1/tasks/{quote_segment(id)}/release", body=body
        )

    async def add_fact(
        self,
        topic: str,
        statement: str,
        confidence: Literal["high", "medium", "low"],
        verified: date,
        *,
        domains: Sequence[str] | None = None,
        kind: Literal["lesson", "reference"] = "lesson",
        scope: str | None = None,
        session: Id | None = None,
    ) -> of_tasks.AddFactResponse:
        """Stores a fact that was verified on a day; `domains`: hosts of pages that confirm it."""
        body = drop_none(topic=topic, statement=statement, confidence=confidence, verified=verified)
        body |= drop_none(domains=domains, kind=kind, scope=scope, session=session)
        return await self.request(of_tasks.AddFactResponse, "POST", "/v1/facts", body=body)

    def list_facts(
        self, *, topic: str | None = None, scope: str | None = None
    ) -> AsyncIterator[of_tasks.FactBody]:
        """The facts, newest first."""
        return self.paginate(of_tasks.FactPage, "/v1/facts", drop_none(topic=topic, scope=scope))

    async def start_dream(
        self, *, scope: str | None = None, session: Id | None = None
    ) -> of_dreams.DreamRequestStatus:
        """Asks for a scope, or the scope of a session, to be digested now."""
        body = drop_none(scope=scope, session=session)
        return await self.request(of_dreams.DreamRequestStatus, "POST", "/v1/dream", body=body)

    def list_undigested(
        self, *, scope: str | None = None
    ) -> AsyncIterator[of_dreams.UndigestedScope]:
        """Lists the backlog of undigested turns, by scope."""
        return self.paginate(of_dreams.UndigestedPage, "/v1/dream", drop_none(scope=scope))

    def list_dreams(self, *, scope: str | None = None) -> AsyncIterator[of_dreams.DreamRun]:
        """The dreams there were, the newest first."""
        return self.paginate(of_dreams.DreamPage, "/v1/dreams", drop_none(scope=scope))

    async def get_dream(self, id: Id, *, cursor: str | None = None) -> of_dreams.DreamDetail:
        """Returns the actions of one dream with reasons; decisions are paged, `next` is the next
        cursor.
        """
        return await self.request(
            of_dreams.DreamDetail,
            "GET",
            f"/v1/dreams/{quote_segment(id)}",
            query=drop_none(cursor=cursor),
        )

    def list_summaries(self, *, scope: str | None = None) -> AsyncIterator[of_dreams.ScopeSummary]:
        """Lists the current summary of each scope, and the memories that it is based on."""
        return self.paginate(of_dreams.SummaryPage, "/v1/dream/summaries", drop_none(scope=scope))

    def list_summary_versions(self, scope: str) -> AsyncIterator[of_dreams.ScopeSummary]:
        """The versions of a scope's summary, the newest first."""
        path = "/v1/dream/summaries/history"
        return self.paginate(of_dreams.SummaryPage, path, drop_none(scope=scope))

    async def run_maintenance(
        self, *, steps: Sequence[str] | None = None, dry_run: bool = False
    ) -> of_dreams.MaintenanceResponse:
        """Runs maintenance of the tenant's graph now: archives, promotes, merges, ranks.

        `steps`: only these, such as `archive` and `collect`. `dry_run`: counts the effects of the
        passes that support it, and changes nothing. Raises `Refused` with `forbidden` if the key
        may not do this.
        """
        query = {"dry_run": dry_run, **drop_none(steps=steps)}
        return await self.request(
            of_dreams.MaintenanceResponse, "POST", "/v1/maintenance/run", query=query
        )

    async def announce_git_change(
        self, change: of_git.GitChange | Mapping[str, Any]
    ) -> of_git.GitChangeResponse:
        """Announces the changes of a push; a repeated announcement is a duplicate."""
        return await self.request(of_git.GitChangeResponse, "POST", "/v1/git/changes", body=change)

    def list_stale(
        self, *, project: str | None = None, scope: str | None = None
    ) -> AsyncIterator[of_git.StaleMemoryBody]:
        """The memories that commits made doubtful, with the evidence."""
        return self.paginate(of_git.StalePage, "/v1/stale", drop_none(project=project, scope=scope))

    def list_reviews(self, *, state: str | None = None) -> AsyncIterator[of_git.ReviewBody]:
        """Lists a model's reviews of doubtful memories; without a `state`, the open ones."""
        return self.paginate(of_git.ReviewPage, "/v1/reviews", drop_none(state=state))

    async def accept_review(self, id: Id) -> of_git.ReviewDecisionResponse:
        """Applies a review to its memory."""
        return await self.request(
            of_git.ReviewDecisionResponse, "POST", f"/v1/reviews/{quote_segment(id)}/accept"
        )

    async def reject_review(self, id: Id) -> of_git.ReviewDecisionResponse:
        """Leaves the memory as it is."""
        return await self.request(
            of_git.ReviewDecisionResponse, "POST", f"/v1/reviews/{quote_segment(id)}/reject"
        )

    def list_unanchored(self, project: str) -> AsyncIterator[of_git.UnanchoredMemory]:
        """Memories of which the files are known, but nothing in them."""
        return self.paginate(of_git.UnanchoredPage, "/v1/git/anchors", {"project": project})

    async def set_anchors(
        self, project: str, anchors: Sequence[Mapping[str, Any]]
    ) -> of_git.AnchorMemoriesResponse:
        """Sets the code locations of memories: `memory` and `git` each, at most 200."""
        body = {"project": project, "anchors": list(anchors)}
        return await self.request(
            of_git.AnchorMemoriesResponse, "POST", "/v1/git/anchors", body=body
        )

    def list_traces(self, *, session: Id | None = None) -> AsyncIterator[of_recall.TraceSummary]:
        """The recalls there were, the newest first."""
        return self.paginate(of_recall.TracePage, "/v1/traces", drop_none(session=session))

    async def get_trace(self, id: str) -> of_recall.TraceDetail:
        """Returns the trace of one recall."""
        return await self.request(of_recall.TraceDetail, "GET", f"/v1/traces/{quote_segment(id)}")

    async def confirm_delivery(self, id: str) -> of_recall.DeliveryReceipt:
        """Confirms that the agent received what the preflow of this trace gave."""
        path = f"/v1/traces/{quote_segment(id)}/delivery"
        return await self.request(of_recall.DeliveryReceipt, "POST", path)
