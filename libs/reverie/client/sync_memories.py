"""Generated from `memories.py`: the same calls for synchronous code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.sync_base import SyncClientBase

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from reverie.client.parameters import RecallFields, RememberFields
    from reverie.contracts import context as of_context
    from reverie.contracts import context as of_preflow
    from reverie.contracts import dreams as of_tending
    from reverie.contracts import edits as of_edits
    from reverie.contracts import memories as of_memories
    from reverie.contracts import recall as of_recall
    from reverie.contracts import typed_memories as of_skills
Id = UUID | str


class SyncMemoryCalls(SyncClientBase):
    """Calls about memories; an `id` may be short."""

    def remember(
        self, content: str, **fields: Unpack[RememberFields]
    ) -> of_memories.RememberResponse:
        """Stores a memory. `conflict`: another one is active under the key, and no reason given."""
        return self._portal.run(self._reverie.remember(content, **fields))

    def remember_batch(
        self, items: Sequence[Mapping[str, Any]]
    ) -> of_memories.RememberBatchResponse:
        """Stores up to 500 memories in one go; each item is answered, or refused, by itself."""
        return self._portal.run(self._reverie.remember_batch(items))

    def recall(self, query: str, **fields: Unpack[RecallFields]) -> of_recall.RecallResponse:
        """The memories that answer a question, the best first; scores run from 0 to 1.

        `degraded` in the answer names what could not be searched; the rest was.
        """
        return self._portal.run(self._reverie.recall(query, **fields))

    def recall_as_text(self, query: str, **fields: Unpack[RecallFields]) -> str:
        """What answers a question, fenced, for a prompt; empty where nothing does.

        What stands in the fence is labelled as data, and is not taken in again as new.
        """
        return self._portal.run(self._reverie.recall_as_text(query, **fields))

    def preflow(
        self,
        session: Id,
        query: str,
        *,
        files: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        compacted: bool = False,
        again: bool = False,
    ) -> of_preflow.PreflowResponse:
        """What a session should know for its next turn, without what it was given before."""
        return self._portal.run(
            self._reverie.preflow(
                session,
                query,
                files=files,
                budget_tokens=budget_tokens,
                compacted=compacted,
                again=again,
            )
        )

    def get_context(
        self,
        *,
        project: str | None = None,
        session: Id | None = None,
        scope: Sequence[str] | None = None,
        files: Sequence[str] | None = None,
        budget_tokens: int | None = None,
    ) -> of_context.ContextResponse:
        """What to know before starting: of a `project`, a `session`, or all the key may read."""
        return self._portal.run(
            self._reverie.get_context(
                project=project,
                session=session,
                scope=scope,
                files=files,
                budget_tokens=budget_tokens,
            )
        )

    def get_memory(self, id: Id, *, as_of: datetime | None = None) -> of_memories.MemoryDetail:
        """One memory with its neighbours; `as_of`: as it was known then."""
        return self._portal.run(self._reverie.get_memory(id, as_of=as_of))

    def list_memories(
        self,
        *,
        scope: str | None = None,
        kind: Sequence[str] | None = None,
        status: Sequence[str] | None = None,
        tag: str | None = None,
        key: str | None = None,
        session: Id | None = None,
        valid_at: datetime | None = None,
    ) -> Iterator[of_memories.MemoryBody]:
        """All memories that pass, the newest first, read by the page."""
        return self._portal.iterate(
            self._reverie.list_memories(
                scope=scope,
                kind=kind,
                status=status,
                tag=tag,
                key=key,
                session=session,
                valid_at=valid_at,
            )
        )

    def edit_memory(
        self, id: Id, changes: Mapping[str, Any], *, version: int | None = None
    ) -> of_edits.MemoryChangeResponse:
        """Changes fields of a memory. `precondition_failed`: it is not `version` that stands."""
        return self._portal.run(self._reverie.edit_memory(id, changes, version=version))

    def forget(self, id: Id, *, version: int | None = None) -> of_edits.MemoryChangeResponse:
        """Forgets a memory: it is never found again."""
        return self._portal.run(self._reverie.forget(id, version=version))

    def rollback(
        self, id: Id, version: int, *, reason: str | None = None
    ) -> of_edits.MemoryChangeResponse:
        """Brings back what `version` was, as a new version."""
        return self._portal.run(self._reverie.rollback(id, version, reason=reason))

    def feedback(
        self,
        id: Id,
        verdict: Literal["approve", "edit", "discard"],
        *,
        content: str | None = None,
        reason: str | None = None,
    ) -> of_edits.MemoryChangeResponse:
        """Approves a memory, rewrites it, or discards it."""
        return self._portal.run(self._reverie.feedback(id, verdict, content=content, reason=reason))

    def confirm(self, id: Id) -> of_edits.ConfirmMemoryResponse:
        """Says that a memory holds as the code stands: what made it doubtful is cleared."""
        return self._portal.run(self._reverie.confirm(id))

    def restore(self, id: Id) -> of_tending.RestoreMemoryResponse:
        """Takes a memory out of the archive."""
        return self._portal.run(self._reverie.restore(id))

    def pin(self, id: Id) -> of_edits.MemoryChangeResponse:
        """Pins a memory: it does not fade, and is told at every start."""
        return self._portal.run(self._reverie.pin(id))

    def unpin(self, id: Id) -> of_edits.MemoryChangeResponse:
        """Takes the pin off."""
        return self._portal.run(self._reverie.unpin(id))

    def list_versions(self, id: Id) -> Iterator[of_edits.MemoryVersionBody]:
        """The versions of a memory, the newest first."""
        return self._portal.iterate(self._reverie.list_versions(id))

    def get_provenance(self, id: Id) -> of_edits.MemoryProvenanceResponse:
        """Where a memory came from: session, turns, commit, what it replaced."""
        return self._portal.run(self._reverie.get_provenance(id))

    def list_skills(self, *, scope: str | None = None) -> Iterator[of_skills.SkillBody]:
        """Skills, the newest first, with the places that a replay fills."""
        return self._portal.iterate(self._reverie.list_skills(scope=scope))

    def replay_skill(
        self, id: Id, values: Mapping[str, str] | None = None
    ) -> of_skills.SkillReplayResponse:
        """A skill ready to follow, its places filled with `values`."""
        return self._portal.run(self._reverie.replay_skill(id, values))
