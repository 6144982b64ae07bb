"""Helpers to write, read and edit memories through the store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import ReverieError
from reverie.domain.core.kinds import EdgeKind
from reverie.domain.core.memory import (
    Memory,
    NewEdge,
    NewMemory,
    WriteOutcome,
    WriteResult,
    hash_content,
)
from reverie.store.memories.edits import (
    NEWEST_VERSION,
    ChangeResult,
    EditStore,
    MemoryChange,
    MemoryVersion,
)
from reverie.store.memories.memories import ListFilter, MemoryNeighbour, MemoryStore
from tests.support.store_setup import admin_rows, new

SHOP, HOME = "project/shop", "user/ann"


def edge(to: UUID, kind: EdgeKind = EdgeKind.RELATES_TO, weight: float = 1.0) -> NewEdge:
    return NewEdge(to, kind, weight)


def worded(content: str) -> dict[str, Any]:
    """The columns that another content changes."""
    return {"content": content, "hash": "\\x" + hash_content(content), "index_text": content}


@dataclass(frozen=True)
class MemoryAccess:
    """The stores of memories and edits, and a principal in each of two tenants."""

    memories: MemoryStore
    edits: EditStore
    me: Principal
    other: Principal
    admin_url: str

    def events(self) -> list[tuple[str, str, int]]:
        """Subject, memory and version of each event in the outbox, sorted."""
        rows = admin_rows(
            self.admin_url, "select subject, payload from outbox where tenant = %s", self.me.tenant
        )
        return sorted((str(subject), body["id"], body["version"]) for subject, body in rows)

    @property
    def of_shop(self) -> Principal:
        """One of my tenant who reads and writes the shop alone."""
        return replace(self.me, reads=(f"{SHOP}/*",), writes=(f"{SHOP}/*",))

    async def write(
        self, *items: NewMemory, who: Principal | None = None
    ) -> list[WriteResult | ReverieError]:
        return await self.memories.remember(who or self.me, items, {"origin": "here"})

    async def add(self, content: str, who: Principal | None = None, **fields: Any) -> UUID:
        """The id of a memory that must be made anew."""
        (found,) = await self.write(new(content, **fields), who=who)
        assert isinstance(found, WriteResult), found
        assert found.outcome is not WriteOutcome.DUPLICATE
        return found.id

    async def get(self, memory: UUID) -> Memory:
        return await self.memories.get(self.me, memory)

    async def neighbours(self, memory: UUID) -> list[MemoryNeighbour]:
        return (await self.memories.get_with_neighbours(self.me, memory))[1]

    async def list_ids(
        self, only: ListFilter | None = None, who: Principal | None = None
    ) -> list[UUID]:
        page = await self.memories.page(who or self.me, None, 50, only or ListFilter())
        return [memory.id for memory in page]

    async def change(
        self,
        memory: UUID,
        who: Principal | None = None,
        expected: int | None = None,
        event: str = "edited",
        **fields: Any,
    ) -> ChangeResult:
        change = MemoryChange(fields, "on purpose", event, expected)
        return await self.edits.change(who or self.me, memory, change, {})

    async def forget(self, memory: UUID) -> ChangeResult:
        return await self.change(memory, event="forgotten", status="deleted")

    async def history(
        self, memory: UUID, below: int = NEWEST_VERSION, limit: int = 50
    ) -> list[MemoryVersion]:
        return await self.edits.history(self.me, memory, below, limit)
