"""Uses of memories by readers, stored apart from the memories."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.confidence import BOOST, NEAR_BOOST
from reverie.store.database import Database

FAN_OUT = 20


class Uses:
    """Counts each session's use of a memory once."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def note(self, who: Principal, used_by: str, memories: Sequence[UUID]) -> int:
        """Boosts the memories and, less, their neighbours; answers how many were new to it."""
        found = await self._db.call(
            "use_memories",
            who.tenant,
            used_by,
            list(memories),
            list(who.reads),
            BOOST,
            NEAR_BOOST,
            FAN_OUT,
        )
        return int(found)
