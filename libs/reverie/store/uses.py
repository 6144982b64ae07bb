"""Uses of memories by readers, stored apart from the memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from reverie.domain.confidence import BOOST, NEAR_BOOST
from reverie.store.database import Database

FAN_OUT = 20


class Use(NamedTuple):
    """Memories that somebody, a session or a key in an hour, used."""

    by: str
    memories: Sequence[UUID]


class Uses:
    """Counts each reader's use of a memory once."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def note(self, tenant: int, reads: Sequence[str], uses: Sequence[Use]) -> int:
        """Boosts the memories that `reads` covers and, less, their neighbours.

        Answers how many uses were new.
        """
        pairs = list(dict.fromkeys((use.by, one) for use in uses for one in use.memories))
        found = await self._db.call(
            "use_memories",
            tenant,
            [by for by, _ in pairs],
            [one for _, one in pairs],
            list(reads),
            BOOST,
            NEAR_BOOST,
            FAN_OUT,
        )
        return int(found)
