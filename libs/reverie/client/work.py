"""Tasks, claims, sessions and their turns, dreams, git changes, traces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.base import Base, given, part
from reverie.client.later import Later

if TYPE_CHECKING:
    from reverie.contracts import claims as of_claims
    from reverie.contracts import dreams as of_dreams
    from reverie.contracts import git as of_git
    from reverie.contracts import reviews as of_reviews
    from reverie.contracts import sessions as of_sessions
    from reverie.contracts import tasks as of_tasks
    from reverie.contracts import tending as of_tending
    from reverie.contracts import traces as of_traces
else:
    of_claims = Later("reverie.contracts.claims")
    of_dreams = Later("reverie.contracts.dreams")
    of_git = Later("reverie.contracts.git")
    of_reviews = Later("reverie.contracts.reviews")
    of_sessions = Later("reverie.contracts.sessions")
    of_tasks = Later("reverie.contracts.tasks")
    of_tending = Later("reverie.contracts.tending")
    of_traces = Later("reverie.contracts.traces")

Id = UUID | str


class Work(Base):
    """Calls about what agents do."""

    async def start_session(
        self,
        agent: str,
        *,
        project: str | None = None,
        user: str | None = None,
        branch: str | None = None,
        external_id: str | None = None,
    ) -> of_sessions.StartedSession:
        """Starts a session; with the same `external_id` again, it goes on with that one."""
        body = given(
            agent=agent, project=project, user=user, branch=branch, external_id=external_id
        )
        return await self.ask(of_sessions.StartedSession, "POST", "/v1/sessions/start", body=body)

    async def end_session(self, id: Id, *, summary: str | None = None) -> of_sessions.EndedSession:
        """Ends a session; what was said in it is digested soon."""
        path = f"/v1/sessions/{part(id)}/end"
        return await self.ask(of_sessions.EndedSession, "POST", path, body=given(summary=summary))

    def sessions(
        self, *, agent: str | None = None, project: str | None = None
    ) -> AsyncIterator[of_sessions.SessionBody]:
        """The sessions whose turns the key may read, the newest first."""
        query = given(agent=agent, project=project)
        return self.walk(of_sessions.SessionPage, "/v1/sessions", query)

    async def append_turns(
        self, session: Id, turns: Sequence[Mapping[str, Any]]
    ) -> of_sessions.AppendedTurns:
        """Adds up to 1000 turns: `role` and `content` each, and `at`, `tool`, `external_id`."""
        body = {"session": session, "turns": list(turns)}
        return await self.ask(of_sessions.AppendedTurns, "POST", "/v1/turns", body=body)

    def turns(self, session: Id) -> AsyncIterator[of_sessions.Turn]:
        """The turns of a session, in order."""
        return self.walk(of_sessions.TurnPage, f"/v1/sessions/{part(session)}/turns")

    async def adjust(
        self,
        session: Id,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        diff: str | None = None,
    ) -> of_sessions.Adjusted:
        """Corrects memories by what was said, or changed, in the turn that is over."""
        body = given(messages=messages, diff=diff)
        return await self.ask(
            of_sessions.Adjusted, "POST", f"/v1/sessions/{part(session)}/adjust", body=body
        )

    def tasks(
        self,
        *,
        scope: str | None = None,
        state: Sequence[str] | None = None,
        claimable: bool | None = None,
    ) -> AsyncIterator[of_tasks.TaskBody]:
        """The tasks that pass, the newest first."""
        query = given(scope=scope, state=state, claimable=claimable)
        return self.walk(of_tasks.TaskPage, "/v1/tasks", query)

    async def move_task(
        self,
        id: Id,
        state: Literal["todo", "doing", "blocked", "done"],
        *,
        agent: str | None = None,
    ) -> of_tasks.TaskMoved:
        """Moves a task to another state."""
        body = given(state=state, agent=agent)
        return await self.ask(of_tasks.TaskMoved, "PATCH", f"/v1/tasks/{part(id)}", body=body)

    async def claim_task(
        self, id: Id, *, agent: str | None = None, seconds: int = 900
    ) -> of_tasks.TaskMoved:
        """Takes a task: for so many seconds nobody else may have it. `conflict`: one has it."""
        body = given(agent=agent, seconds=seconds)
        return await self.ask(of_tasks.TaskMoved, "POST", f"/v1/tasks/{part(id)}/claim", body=body)

    async def release_task(self, id: Id, *, agent: str | None = None) -> of_tasks.TaskMoved:
        """Gives a task back."""
        body = given(agent=agent)
        return await self.ask(
            of_tasks.TaskMoved, "POST", f"/v1/tasks/{part(id)}/release", body=body
        )

    async def learn_claim(
        self,
        topic: str,
        claim: str,
        confidence: Literal["high", "medium", "low"],
        verified: date,
        *,
        domains: Sequence[str] | None = None,
        kind: Literal["lesson", "reference"] = "lesson",
        scope: str | None = None,
        session: Id | None = None,
    ) -> of_claims.ClaimLearned:
        """Keeps a claim that was verified on a day; `domains`: hosts of pages that say so."""
        body = given(topic=topic, claim=claim, confidence=confidence, verified=verified)
        body |= given(domains=domains, kind=kind, scope=scope, session=session)
        return await self.ask(of_claims.ClaimLearned, "POST", "/v1/claims", body=body)

    def claims(
        self, *, topic: str | None = None, scope: str | None = None
    ) -> AsyncIterator[of_claims.ClaimBody]:
        """The claims that were learned, the newest first."""
        return self.walk(of_claims.ClaimPage, "/v1/claims", given(topic=topic, scope=scope))

    async def dream(
        self, *, scope: str | None = None, session: Id | None = None
    ) -> of_dreams.DreamRequested:
        """Asks for a scope, or the scope of a session, to be digested now."""
        body = given(scope=scope, session=session)
        return await self.ask(of_dreams.DreamRequested, "POST", "/v1/dream", body=body)

    def undigested(self, *, scope: str | None = None) -> AsyncIterator[of_dreams.ScopeWaiting]:
        """What waits to be digested, by scope."""
        return self.walk(of_dreams.WaitingPage, "/v1/dream", given(scope=scope))

    def dreams(self, *, scope: str | None = None) -> AsyncIterator[of_dreams.DreamRun]:
        """The dreams there were, the newest first."""
        return self.walk(of_dreams.DreamPage, "/v1/dreams", given(scope=scope))

    async def dream_run(self, id: Id, *, cursor: str | None = None) -> of_dreams.DreamDetail:
        """What one dream did and why; its decisions by the page, `next` is the cursor of more."""
        return await self.ask(
            of_dreams.DreamDetail, "GET", f"/v1/dreams/{part(id)}", query=given(cursor=cursor)
        )

    def summaries(self, *, scope: str | None = None) -> AsyncIterator[of_dreams.ScopeSummary]:
        """What stands in each scope, and the memories that it rests on."""
        return self.walk(of_dreams.SummaryPage, "/v1/dream/summaries", given(scope=scope))

    def summary_history(self, scope: str) -> AsyncIterator[of_dreams.ScopeSummary]:
        """The versions of a scope's summary, the newest first."""
        path = "/v1/dream/summaries/history"
        return self.walk(of_dreams.SummaryPage, path, given(scope=scope))

    async def tend(
        self, *, only: Sequence[str] | None = None, dry_run: bool = False
    ) -> of_tending.TendAnswer:
        """Tends the graph of the tenant now: archives, promotes, merges, ranks.

        `only`: these passes, as `archive` and `collect`; `dry_run`: counts what would be done by
        the passes that can tell, and changes nothing. Raises `Refused` with `forbidden` where the
        key may not.
        """
        query = {"dry_run": dry_run, **given(only=only)}
        return await self.ask(of_tending.TendAnswer, "POST", "/v1/dream/tend", query=query)

    async def git_change(self, change: of_git.GitChange | Mapping[str, Any]) -> of_git.GitAccepted:
        """Tells what a push changed; the same change told again is a duplicate."""
        return await self.ask(of_git.GitAccepted, "POST", "/v1/git/changes", body=change)

    def stale(
        self, *, project: str | None = None, scope: str | None = None
    ) -> AsyncIterator[of_git.StaleItem]:
        """The memories that commits made doubtful, with the evidence."""
        return self.walk(of_git.StalePage, "/v1/stale", given(project=project, scope=scope))

    def reviews(self, *, state: str | None = None) -> AsyncIterator[of_reviews.ReviewBody]:
        """What a language model says of memories in doubt; without a `state`, what is open."""
        return self.walk(of_reviews.ReviewPage, "/v1/reviews", given(state=state))

    async def accept_review(self, id: Id) -> of_reviews.Decided:
        """Does to the memory what a review says."""
        return await self.ask(of_reviews.Decided, "POST", f"/v1/reviews/{part(id)}/accept")

    async def refuse_review(self, id: Id) -> of_reviews.Decided:
        """Leaves the memory as it is."""
        return await self.ask(of_reviews.Decided, "POST", f"/v1/reviews/{part(id)}/refuse")

    def unanchored(self, project: str) -> AsyncIterator[of_git.Lacking]:
        """Memories of which the files are known, but nothing in them."""
        return self.walk(of_git.LackingPage, "/v1/git/anchors", {"project": project})

    async def anchor(self, project: str, anchors: Sequence[Mapping[str, Any]]) -> of_git.Anchored:
        """Says where memories belong in the code: `memory` and `git` each, at most 200."""
        body = {"project": project, "anchors": list(anchors)}
        return await self.ask(of_git.Anchored, "POST", "/v1/git/anchors", body=body)

    def traces(self, *, session: Id | None = None) -> AsyncIterator[of_traces.TraceHead]:
        """The recalls there were, the newest first."""
        return self.walk(of_traces.TracePage, "/v1/traces", given(session=session))

    async def trace(self, id: str) -> of_traces.Trace:
        """How one recall came to its answer."""
        return await self.ask(of_traces.Trace, "GET", f"/v1/traces/{part(id)}")
