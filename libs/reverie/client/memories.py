"""Memories: written, found, read, changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.base import Base, expecting, given, part
from reverie.client.later import Later

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from reverie.client.fields import RecallFields, RememberFields
    from reverie.contracts import context as of_context
    from reverie.contracts import edits as of_edits
    from reverie.contracts import memories as of_memories
    from reverie.contracts import preflow as of_preflow
    from reverie.contracts import recall as of_recall
    from reverie.contracts import skills as of_skills
    from reverie.contracts import tending as of_tending
else:
    of_context = Later("reverie.contracts.context")
    of_edits = Later("reverie.contracts.edits")
    of_memories = Later("reverie.contracts.memories")
    of_preflow = Later("reverie.contracts.preflow")
    of_recall = Later("reverie.contracts.recall")
    of_skills = Later("reverie.contracts.skills")
    of_tending = Later("reverie.contracts.tending")

Id = UUID | str


class Memories(Base):
    """Calls about memories; an `id` may be short."""

    async def remember(
        self, content: str, **fields: Unpack[RememberFields]
    ) -> of_memories.Remembered:
        """Stores a memory. `conflict`: another one is active under the key, and no reason given."""
        body = {"content": content, **fields}
        return await self.ask(of_memories.Remembered, "POST", "/v1/remember", body=body)

    async def remember_batch(
        self, items: Sequence[Mapping[str, Any]]
    ) -> of_memories.RememberedBatch:
        """Stores up to 500 memories in one go; each item is answered, or refused, by itself."""
        body = {"items": list(items)}
        return await self.ask(of_memories.RememberedBatch, "POST", "/v1/remember/batch", body=body)

    async def recall(self, query: str, **fields: Unpack[RecallFields]) -> of_recall.RecallAnswer:
        """The memories that answer a question, the best first; scores run from 0 to 1.

        `degraded` in the answer names what could not be searched; the rest was.
        """
        body = {"query": query, **fields}
        return await self.ask(of_recall.RecallAnswer, "POST", "/v1/recall", body=body)

    async def memory_block(self, query: str, **fields: Unpack[RecallFields]) -> str:
        """What answers a question, fenced, for a prompt; empty where nothing does.

        What stands in the fence is labelled as data, and is not taken in again as new.
        """
        from reverie.domain.told_lines import lines

        found = await self.recall(query, **fields)
        return lines([one.model_dump(mode="json") for one in found.memories], "")

    async def preflow(
        self,
        session: Id,
        query: str,
        *,
        files: Sequence[str] | None = None,
        budget_tokens: int | None = None,
        compacted: bool = False,
        again: bool = False,
    ) -> of_preflow.PreflowAnswer:
        """What a session should know for its next turn, without what it was given before."""
        body = given(session=session, query=query, files=files, budget_tokens=budget_tokens)
        body |= {"compacted": compacted, "again": again}
        return await self.ask(of_preflow.PreflowAnswer, "POST", "/v1/preflow", body=body)

    async def context(
        self,
        *,
        project: str | None = None,
        session: Id | None = None,
        scope: Sequence[str] | None = None,
        files: Sequence[str] | None = None,
        budget_tokens: int | None = None,
    ) -> of_context.ContextAnswer:
        """What to know before starting: of a `project`, a `session`, or all the key may read."""
        query = given(
            project=project, session=session, scope=scope, files=files, budget_tokens=budget_tokens
        )
        return await self.ask(of_context.ContextAnswer, "GET", "/v1/context", query=query)

    async def memory(self, id: Id, *, as_of: datetime | None = None) -> of_memories.MemoryDetail:
        """One memory with its neighbours; `as_of`: as it was known then."""
        return await self.ask(
            of_memories.MemoryDetail, "GET", f"/v1/memories/{part(id)}", query=given(as_of=as_of)
        )

    def memories(
        self,
        *,
        scope: str | None = None,
        kind: Sequence[str] | None = None,
        status: Sequence[str] | None = None,
        tag: str | None = None,
        key: str | None = None,
        session: Id | None = None,
        valid_at: datetime | None = None,
    ) -> AsyncIterator[of_memories.MemoryBody]:
        """All memories that pass, the newest first, read by the page."""
        query = given(
            scope=scope,
            kind=kind,
            status=status,
            tag=tag,
            key=key,
            session=session,
            valid_at=valid_at,
        )
        return self.walk(of_memories.MemoryPage, "/v1/memories", query)

    async def edit(
        self, id: Id, changes: Mapping[str, Any], *, version: int | None = None
    ) -> of_edits.Edited:
        """Changes fields of a memory. `precondition_failed`: it is not `version` that stands."""
        path, held = f"/v1/memories/{part(id)}", expecting(version)
        return await self.ask(of_edits.Edited, "PATCH", path, body=changes, headers=held)

    async def forget(self, id: Id, *, version: int | None = None) -> of_edits.Edited:
        """Forgets a memory: it is never found again."""
        path, held = f"/v1/memories/{part(id)}", expecting(version)
        return await self.ask(of_edits.Edited, "DELETE", path, headers=held)

    async def rollback(self, id: Id, version: int, *, reason: str | None = None) -> of_edits.Edited:
        """Brings back what `version` was, as a new version."""
        body = given(version=version, reason=reason)
        return await self.ask(
            of_edits.Edited, "POST", f"/v1/memories/{part(id)}/rollback", body=body
        )

    async def feedback(
        self,
        id: Id,
        verdict: Literal["approve", "edit", "discard"],
        *,
        content: str | None = None,
        reason: str | None = None,
    ) -> of_edits.Edited:
        """Approves a memory, rewrites it, or discards it."""
        body = given(verdict=verdict, content=content, reason=reason)
        return await self.ask(
            of_edits.Edited, "POST", f"/v1/memories/{part(id)}/feedback", body=body
        )

    async def confirm(self, id: Id) -> of_edits.Confirmed:
        """Says that a memory holds as the code stands: what made it doubtful is cleared."""
        return await self.ask(of_edits.Confirmed, "POST", f"/v1/memories/{part(id)}/confirm")

    async def restore(self, id: Id) -> of_tending.Restored:
        """Takes a memory out of the archive."""
        return await self.ask(of_tending.Restored, "POST", f"/v1/memories/{part(id)}/restore")

    async def pin(self, id: Id) -> of_edits.Edited:
        """Pins a memory: it does not fade, and is told at every start."""
        return await self.ask(of_edits.Edited, "PUT", f"/v1/memories/{part(id)}/pin")

    async def unpin(self, id: Id) -> of_edits.Edited:
        """Takes the pin off."""
        return await self.ask(of_edits.Edited, "DELETE", f"/v1/memories/{part(id)}/pin")

    def history(self, id: Id) -> AsyncIterator[of_edits.VersionBody]:
        """The versions of a memory, the newest first."""
        return self.walk(of_edits.History, f"/v1/memories/{part(id)}/history")

    async def provenance(self, id: Id) -> of_edits.Origin:
        """Where a memory came from: session, turns, commit, what it replaced."""
        return await self.ask(of_edits.Origin, "GET", f"/v1/memories/{part(id)}/provenance")

    def skills(self, *, scope: str | None = None) -> AsyncIterator[of_skills.SkillBody]:
        """Skills, the newest first, with the places that a replay fills."""
        return self.walk(of_skills.SkillPage, "/v1/skills", given(scope=scope))

    async def replay(self, id: Id, values: Mapping[str, str] | None = None) -> of_skills.Replayed:
        """A skill ready to follow, its places filled with `values`."""
        return await self.ask(
            of_skills.Replayed, "GET", f"/v1/memories/{part(id)}/replay", query=values
        )
