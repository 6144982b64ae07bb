"""What a watcher of events may be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from reverie.domain.access import Principal
from reverie.store.database import Database
from reverie.store.marks import Marks, marks_of


@dataclass(frozen=True)
class Seen:
    """A memory of an event, as far as it is told."""

    id: UUID
    scope: str
    kind: str


class Watched:
    """Looks up what events speak of, each call within one tenant."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def seen(self, who: Principal, memories: Sequence[UUID]) -> dict[UUID, Seen]:
        """Those of the memories that the key may read, forgotten ones included."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("watched_memories", list(memories), list(who.reads))
        return {row["id"]: Seen(**row) for row in found}

    async def stands(self, who: Principal) -> bool:
        """Whether the key is still valid."""
        async with self._db.tenant(who.tenant) as tenant:
            return bool(await tenant.value("key_stands", UUID(who.key_id)))

    async def marks(self, who: Principal) -> Marks:
        """What places in the stream of events are told by. Raises `Unauthenticated`."""
        return await marks_of(self._db, who)
