"""Derived rows put in their place anew, batch by batch, beside services that go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from reverie.store.database import Database
from reverie.store.models import pointed

START = UUID(int=0)


@dataclass(frozen=True)
class Said:
    """What the words of a memory are made of."""

    id: UUID
    key: str | None
    content: str
    tags: Sequence[str]


@dataclass(frozen=True)
class Turn:
    """What the words of a turn are made of."""

    id: UUID
    role: str
    content: str


class Reindex:
    """Each call is one transaction within one tenant; any of them may be repeated."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def place(self, tenant: int, part: str) -> UUID:
        """The id after which a part that was broken off goes on; the start otherwise."""
        async with self._db.tenant(tenant) as t:
            return await t.value("reindex_place", part) or START

    async def came(self, tenant: int, part: str, after: UUID | None) -> None:
        """Notes how far a part came; None: it is over."""
        async with self._db.tenant(tenant) as t:
            if after is None:
                await t.rows("reindex_over", part)
            else:
                await t.rows("reindex_came", part, after)

    async def memories(self, tenant: int, after: UUID, limit: int) -> list[Said]:
        """Memories in the order of their ids, anchors and forgotten ones left out."""
        async with self._db.tenant(tenant) as t:
            return [Said(**row) for row in await t.rows("reindex_memories", after, limit)]

    async def turns(self, tenant: int, after: UUID, limit: int) -> list[Turn]:
        """Turns in the order of their ids."""
        async with self._db.tenant(tenant) as t:
            return [Turn(**row) for row in await t.rows("reindex_turn_list", after, limit)]

    async def counts(self, tenant: int) -> tuple[int, int]:
        """How many memories and turns there are to go through."""
        async with self._db.tenant(tenant) as t:
            return await t.value("reindex_memory_count"), await t.value("reindex_turn_count")

    async def memory_words(self, tenant: int, texts: Mapping[str, str]) -> None:
        """Puts the words of memories, by id, and their postings in their place."""
        async with self._db.tenant(tenant) as t:
            await t.rows("reindex_words", dict(texts))

    async def turn_words(self, tenant: int, texts: Mapping[str, str]) -> None:
        """Puts the postings of turns, by id, in their place."""
        async with self._db.tenant(tenant) as t:
            await t.rows("reindex_turns", dict(texts))

    async def sweep_words(self, tenant: int) -> None:
        """Removes postings that nothing gives."""
        async with self._db.tenant(tenant) as t:
            await t.rows("reindex_sweep_postings")
        async with self._db.tenant(tenant) as t:
            await t.rows("reindex_sweep_turns")

    async def sweep_vectors(self, tenant: int) -> None:
        """Removes vectors and chunks of what is no more."""
        async with self._db.tenant(tenant) as t:
            await pointed(t)
            await t.rows("reindex_sweep_vectors")
            await t.rows("reindex_sweep_chunks")

    async def anchors(self, tenant: int) -> None:
        """Puts the anchors of file nodes back."""
        async with self._db.tenant(tenant) as t:
            await t.rows("reindex_anchors")
