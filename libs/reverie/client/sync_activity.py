"""Generated from `activity.py`: the same calls for synchronous code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.sync_base import SyncClientBase

if TYPE_CHECKING:
    from reverie.contracts import dreams as of_dreams
    from reverie.contracts import dreams as of_tending
    from reverie.contracts import git as of_git
    from reverie.contracts import git as of_reviews
    from reverie.contracts import recall as of_traces
    from reverie.contracts import sessions as of_sessions
    from reverie.contracts import typed_memories as of_claims
    from reverie.contracts import typed_memories as of_tasks
Id = UUID | str


class SyncActivityCalls(SyncClientBase):
    """Calls about what agents do."""

    def start_session(
        self,
        agent: str,
        *,
        project: str | None = None,
        user: str | None = None,
        branch: str | None = None,
        external_id: str | None = None,
    ) -> of_sessions.StartSessionResponse:
        """Starts a session; with the same `external_id` again, it goes on with that one."""
        return self._portal.run(
            self._reverie.start_session(
                agent, project=project, user=user, branch=branch, external_id=external_id
            )
        )

    def end_session(self, id: Id, *, summary: str | None = None) -> of_sessions.EndSessionResponse:
        """Ends a session; what was said in it is digested soon."""
        return self._portal.run(self._reverie.end_session(id, summary=summary))

    def list_sessions(
        self, *, agent: str | None = None, project: str | None = None
    ) -> Iterator[of_sessions.SessionBody]:
        """The sessions whose turns the key may read, the newest first."""
        return self._portal.iterate(self._reverie.list_sessions(agent=agent, project=project))

    def append_turns(
        self, session: Id, turns: Sequence[Mapping[str, Any]]
    ) -> of_sessions.AppendTurnsResponse:
        """Adds up to 1000 turns: `role` and `content` each, and `at`, `tool`, `external_id`."""
        return self._portal.run(self._reverie.append_turns(session, turns))

    def list_turns(self, session: Id) -> Iterator[of_sessions.TurnBody]:
        """The turns of a session, in order."""
        return self._portal.iterate(self._reverie.list_turns(session))

    def correct_memories(
        self,
        session: Id,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        diff: str | None = None,
    ) -> of_sessions.CorrectSessionResponse:
        """Corrects memories by what was said, or changed, in the turn that is over."""
        return self._portal.run(
            self._reverie.correct_memories(session, messages=messages, diff=diff)
        )

    def list_tasks(
        self,
        *,
        scope: str | None = None,
        state: Sequence[str] | None = None,
        claimable: bool | None = None,
    ) -> Iterator[of_tasks.TaskBody]:
        """The tasks that pass, the newest first."""
        return self._portal.iterate(
            self._reverie.list_tasks(scope=scope, state=state, claimable=claimable)
        )

    def move_task(
        self,
        id: Id,
        state: Literal["todo", "doing", "blocked", "done"],
        *,
        agent: str | None = None,
    ) -> of_tasks.TaskChangeResponse:
        """Moves a task to another state."""
        return self._portal.run(self._reverie.move_task(id, state, agent=agent))

    def claim_task(
        self, id: Id, *, agent: str | None = None, seconds: int = 900
    ) -> of_tasks.TaskChangeResponse:
        """Takes a task: for so many seconds nobody else may have it. `conflict`: one has it."""
        return self._portal.run(self._reverie.claim_task(id, agent=agent, seconds=seconds))

    def release_task(self, id: Id, *, agent: str | None = None) -> of_tasks.TaskChangeResponse:
        """Gives a task back."""
        return self._portal.run(self._reverie.release_task(id, agent=agent))

    def add_fact(
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
    ) -> of_claims.AddFactResponse:
        """Keeps a claim that was verified on a day; `domains`: hosts of pages that say so."""
        return self._portal.run(
            self._reverie.add_fact(
                topic,
                claim,
                confidence,
                verified,
                domains=domains,
                kind=kind,
                scope=scope,
                session=session,
            )
        )

    def list_facts(
        self, *, topic: str | None = None, scope: str | None = None
    ) -> Iterator[of_claims.FactBody]:
        """The claims that were learned, the newest first."""
        return self._portal.iterate(self._reverie.list_facts(topic=topic, scope=scope))

    def start_dream(
        self, *, scope: str | None = None, session: Id | None = None
    ) -> of_dreams.DreamRequestStatus:
        """Asks for a scope, or the scope of a session, to be digested now."""
        return self._portal.run(self._reverie.start_dream(scope=scope, session=session))

    def list_undigested(self, *, scope: str | None = None) -> Iterator[of_dreams.UndigestedScope]:
        """What waits to be digested, by scope."""
        return self._portal.iterate(self._reverie.list_undigested(scope=scope))

    def list_dreams(self, *, scope: str | None = None) -> Iterator[of_dreams.DreamRun]:
        """The dreams there were, the newest first."""
        return self._portal.iterate(self._reverie.list_dreams(scope=scope))

    def get_dream(self, id: Id, *, cursor: str | None = None) -> of_dreams.DreamDetail:
        """What one dream did and why; its decisions by the page, `next` is the cursor of more."""
        return self._portal.run(self._reverie.get_dream(id, cursor=cursor))

    def list_summaries(self, *, scope: str | None = None) -> Iterator[of_dreams.ScopeSummary]:
        """What stands in each scope, and the memories that it rests on."""
        return self._portal.iterate(self._reverie.list_summaries(scope=scope))

    def list_summary_versions(self, scope: str) -> Iterator[of_dreams.ScopeSummary]:
        """The versions of a scope's summary, the newest first."""
        return self._portal.iterate(self._reverie.list_summary_versions(scope))

    def run_maintenance(
        self, *, only: Sequence[str] | None = None, dry_run: bool = False
    ) -> of_tending.MaintenanceResponse:
        """Tends the graph of the tenant now: archives, promotes, merges, ranks.

        `only`: these passes, as `archive` and `collect`; `dry_run`: counts what would be done by
        the passes that can tell, and changes nothing. Raises `Refused` with `forbidden` where the
        key may not.
        """
        return self._portal.run(self._reverie.run_maintenance(only=only, dry_run=dry_run))

    def announce_git_change(
        self, change: of_git.GitChange | Mapping[str, Any]
    ) -> of_git.GitChangeResponse:
        """Tells what a push changed; the same change told again is a duplicate."""
        return self._portal.run(self._reverie.announce_git_change(change))

    def list_stale(
        self, *, project: str | None = None, scope: str | None = None
    ) -> Iterator[of_git.StaleMemoryBody]:
        """The memories that commits made doubtful, with the evidence."""
        return self._portal.iterate(self._reverie.list_stale(project=project, scope=scope))

    def list_reviews(self, *, state: str | None = None) -> Iterator[of_reviews.ReviewBody]:
        """What a language model says of memories in doubt; without a `state`, what is open."""
        return self._portal.iterate(self._reverie.list_reviews(state=state))

    def accept_review(self, id: Id) -> of_reviews.ReviewDecisionResponse:
        """Does to the memory what a review says."""
        return self._portal.run(self._reverie.accept_review(id))

    def reject_review(self, id: Id) -> of_reviews.ReviewDecisionResponse:
        """Leaves the memory as it is."""
        return self._portal.run(self._reverie.reject_review(id))

    def list_unanchored(self, project: str) -> Iterator[of_git.UnanchoredMemory]:
        """Memories of which the files are known, but nothing in them."""
        return self._portal.iterate(self._reverie.list_unanchored(project))

    def set_anchors(
        self, project: str, anchors: Sequence[Mapping[str, Any]]
    ) -> of_git.AnchorMemoriesResponse:
        """Says where memories belong in the code: `memory` and `git` each, at most 200."""
        return self._portal.run(self._reverie.set_anchors(project, anchors))

    def list_traces(self, *, session: Id | None = None) -> Iterator[of_traces.TraceSummary]:
        """The recalls there were, the newest first."""
        return self._portal.iterate(self._reverie.list_traces(session=session))

    def get_trace(self, id: str) -> of_traces.TraceDetail:
        """How one recall came to its answer."""
        return self._portal.run(self._reverie.get_trace(id))
