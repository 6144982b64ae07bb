"""Written from `work.py`: the same calls, for code that does not await."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.sync_base import SyncBase

if TYPE_CHECKING:
    from reverie.contracts import claims as of_claims
    from reverie.contracts import dreams as of_dreams
    from reverie.contracts import git as of_git
    from reverie.contracts import reviews as of_reviews
    from reverie.contracts import sessions as of_sessions
    from reverie.contracts import tasks as of_tasks
    from reverie.contracts import tending as of_tending
    from reverie.contracts import traces as of_traces
Id = UUID | str


class SyncWork(SyncBase):
    """Calls about what agents do."""

    def start_session(
        self,
        agent: str,
        *,
        project: str | None = None,
        user: str | None = None,
        branch: str | None = None,
        external_id: str | None = None,
    ) -> of_sessions.StartedSession:
        """Starts a session; with the same `external_id` again, it goes on with that one."""
        return self._portal.wait(
            self._reverie.start_session(
                agent, project=project, user=user, branch=branch, external_id=external_id
            )
        )

    def end_session(self, id: Id, *, summary: str | None = None) -> of_sessions.EndedSession:
        """Ends a session; what was said in it is digested soon."""
        return self._portal.wait(self._reverie.end_session(id, summary=summary))

    def sessions(
        self, *, agent: str | None = None, project: str | None = None
    ) -> Iterator[of_sessions.SessionBody]:
        """The sessions whose turns the key may read, the newest first."""
        return self._portal.each(self._reverie.sessions(agent=agent, project=project))

    def append_turns(
        self, session: Id, turns: Sequence[Mapping[str, Any]]
    ) -> of_sessions.AppendedTurns:
        """Adds up to 1000 turns: `role` and `content` each, and `at`, `tool`, `external_id`."""
        return self._portal.wait(self._reverie.append_turns(session, turns))

    def turns(self, session: Id) -> Iterator[of_sessions.Turn]:
        """The turns of a session, in order."""
        return self._portal.each(self._reverie.turns(session))

    def adjust(
        self,
        session: Id,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        diff: str | None = None,
    ) -> of_sessions.Adjusted:
        """Corrects memories by what was said, or changed, in the turn that is over."""
        return self._portal.wait(self._reverie.adjust(session, messages=messages, diff=diff))

    def tasks(
        self,
        *,
        scope: str | None = None,
        state: Sequence[str] | None = None,
        claimable: bool | None = None,
    ) -> Iterator[of_tasks.TaskBody]:
        """The tasks that pass, the newest first."""
        return self._portal.each(self._reverie.tasks(scope=scope, state=state, claimable=claimable))

    def move_task(
        self,
        id: Id,
        state: Literal["todo", "doing", "blocked", "done"],
        *,
        agent: str | None = None,
    ) -> of_tasks.TaskMoved:
        """Moves a task to another state."""
        return self._portal.wait(self._reverie.move_task(id, state, agent=agent))

    def claim_task(
        self, id: Id, *, agent: str | None = None, seconds: int = 900
    ) -> of_tasks.TaskMoved:
        """Takes a task: for so many seconds nobody else may have it. `conflict`: one has it."""
        return self._portal.wait(self._reverie.claim_task(id, agent=agent, seconds=seconds))

    def release_task(self, id: Id, *, agent: str | None = None) -> of_tasks.TaskMoved:
        """Gives a task back."""
        return self._portal.wait(self._reverie.release_task(id, agent=agent))

    def learn_claim(
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
        return self._portal.wait(
            self._reverie.learn_claim(
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

    def claims(
        self, *, topic: str | None = None, scope: str | None = None
    ) -> Iterator[of_claims.ClaimBody]:
        """The claims that were learned, the newest first."""
        return self._portal.each(self._reverie.claims(topic=topic, scope=scope))

    def dream(
        self, *, scope: str | None = None, session: Id | None = None
    ) -> of_dreams.DreamRequested:
        """Asks for a scope, or the scope of a session, to be digested now."""
        return self._portal.wait(self._reverie.dream(scope=scope, session=session))

    def undigested(self, *, scope: str | None = None) -> Iterator[of_dreams.ScopeWaiting]:
        """What waits to be digested, by scope."""
        return self._portal.each(self._reverie.undigested(scope=scope))

    def dreams(self, *, scope: str | None = None) -> Iterator[of_dreams.DreamRun]:
        """The dreams there were, the newest first."""
        return self._portal.each(self._reverie.dreams(scope=scope))

    def dream_run(self, id: Id, *, cursor: str | None = None) -> of_dreams.DreamDetail:
        """What one dream did and why; its decisions by the page, `next` is the cursor of more."""
        return self._portal.wait(self._reverie.dream_run(id, cursor=cursor))

    def summaries(self, *, scope: str | None = None) -> Iterator[of_dreams.ScopeSummary]:
        """What stands in each scope, and the memories that it rests on."""
        return self._portal.each(self._reverie.summaries(scope=scope))

    def summary_history(self, scope: str) -> Iterator[of_dreams.ScopeSummary]:
        """The versions of a scope's summary, the newest first."""
        return self._portal.each(self._reverie.summary_history(scope))

    def tend(
        self, *, only: Sequence[str] | None = None, dry_run: bool = False
    ) -> of_tending.TendAnswer:
        """Tends the graph of the tenant now: archives, promotes, merges, ranks.

        `only`: these passes, as `archive` and `collect`; `dry_run`: counts what would be done by
        the passes that can tell, and changes nothing. Raises `Refused` with `forbidden` where the
        key may not.
        """
        return self._portal.wait(self._reverie.tend(only=only, dry_run=dry_run))

    def git_change(self, change: of_git.GitChange | Mapping[str, Any]) -> of_git.GitAccepted:
        """Tells what a push changed; the same change told again is a duplicate."""
        return self._portal.wait(self._reverie.git_change(change))

    def stale(
        self, *, project: str | None = None, scope: str | None = None
    ) -> Iterator[of_git.StaleItem]:
        """The memories that commits made doubtful, with the evidence."""
        return self._portal.each(self._reverie.stale(project=project, scope=scope))

    def reviews(self, *, state: str | None = None) -> Iterator[of_reviews.ReviewBody]:
        """What a language model says of memories in doubt; without a `state`, what is open."""
        return self._portal.each(self._reverie.reviews(state=state))

    def accept_review(self, id: Id) -> of_reviews.Decided:
        """Does to the memory what a review says."""
        return self._portal.wait(self._reverie.accept_review(id))

    def refuse_review(self, id: Id) -> of_reviews.Decided:
        """Leaves the memory as it is."""
        return self._portal.wait(self._reverie.refuse_review(id))

    def unanchored(self, project: str) -> Iterator[of_git.Lacking]:
        """Memories of which the files are known, but nothing in them."""
        return self._portal.each(self._reverie.unanchored(project))

    def anchor(self, project: str, anchors: Sequence[Mapping[str, Any]]) -> of_git.Anchored:
        """Says where memories belong in the code: `memory` and `git` each, at most 200."""
        return self._portal.wait(self._reverie.anchor(project, anchors))

    def traces(self, *, session: Id | None = None) -> Iterator[of_traces.TraceHead]:
        """The recalls there were, the newest first."""
        return self._portal.each(self._reverie.traces(session=session))

    def trace(self, id: str) -> of_traces.Trace:
        """How one recall came to its answer."""
        return self._portal.wait(self._reverie.trace(id))
