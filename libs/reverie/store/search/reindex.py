"""Rebuilds derived search rows in batches while the services run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from reverie.store.db.database import Database
from reverie.store.search.embedding_models import load_model

START_ID = UUID(int=0)


@dataclass(frozen=True)
class MemoryText:
    """The source text of a memory's words."""

    id: UUID
    key: str | None
    content: str
    metadata: Mapping[str, Any]
    tags: Sequence[str]


@dataclass(frozen=True)
class TurnContent:
    """The source text of a turn's words."""

    id: UUID
    role: str
    content: str


class ReindexStore:
    """Each call is one transaction within one tenant; any of them may be repeated."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def load_position(self, tenant: int, part: str) -> UUID:
        """The id after which an interrupted part continues; `START_ID` if none was interrupted."""
        async with self._db.tenant_transaction(tenant) as connection:
            return await connection.fetch_value("reindex_position_get", part) or START_ID

    async def save_position(self, tenant: int, part: str, after: UUID | None) -> None:
        """Saves the position of a part; None: it is finished."""
        async with self._db.tenant_transaction(tenant) as connection:
            if after is None:
                await connection.fetch_rows("reindex_position_delete", part)
            else:
                await connection.fetch_rows("reindex_position_put", part, after)

    async def list_memories(self, tenant: int, after: UUID, limit: int) -> list[MemoryText]:
        """Memories in the order of their ids, anchors and forgotten ones left out."""
        async with self._db.tenant_transaction(tenant) as connection:
            return [
                MemoryText(**row)
                for row in await connection.fetch_rows("reindex_memories", after, limit)
            ]

    async def list_turns(self, tenant: int, after: UUID, limit: int) -> list[TurnContent]:
        """Turns in the order of their ids."""
        async with self._db.tenant_transaction(tenant) as connection:
            return [
                TurnContent(**row)
                for row in await connection.fetch_rows("reindex_turn_list", after, limit)
            ]

    async def count_rows(self, tenant: int) -> tuple[int, int]:
        """Counts the memories and turns to process."""
        async with self._db.tenant_transaction(tenant) as connection:
            return await connection.fetch_value(
                "reindex_memory_count"
            ), await connection.fetch_value("reindex_turn_count")

    async def replace_memory_words(self, tenant: int, texts: Mapping[str, str]) -> None:
        """Replaces the words of memories, by id, and their postings."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("reindex_words", dict(texts))

    async def replace_turn_words(self, tenant: int, texts: Mapping[str, str]) -> None:
        """Replaces the postings of turns, by id."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("reindex_turns", dict(texts))

    async def delete_orphan_postings(self, tenant: int) -> None:
        """Deletes postings of words that no memory or turn has."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("reindex_sweep_postings")
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("reindex_sweep_turns")

    async def delete_orphan_vectors(self, tenant: int) -> None:
        """Deletes vectors and chunks of deleted memories."""
        async with self._db.tenant_transaction(tenant) as connection:
            await load_model(connection)
            await connection.fetch_rows("reindex_sweep_vectors")
            await connection.fetch_rows("reindex_sweep_chunks")

    async def restore_anchors(self, tenant: int) -> None:
        """Creates the anchors that file nodes lack."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("reindex_anchors")
