"""Published events leave the outbox a little later, many in one statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

import structlog

from reverie.domain.errors import ReverieError
from reverie.runtime.later import Later
from reverie.store.database import Database
from reverie.store.outbox import OutboxTable

log = structlog.get_logger("reverie.ingest")

PAUSE_SECONDS = 0.1
WAITING = 10_000
"""Deletions that wait at most; of more the rows stay, for the relay to publish once more."""


class Clearing:
    """The outbox, whose rows are deleted beside the requests.

    One whose deletion a killed process still held is published again, which is harmless.
    """

    def __init__(self, database: Database) -> None:
        self._table = table = OutboxTable(database)
        self._later = Later(self._delete_all, WAITING, PAUSE_SECONDS)
        self.claim, self.age = table.claim, table.age
        self.keep_clearing = self._later.keep_writing

    async def delete(self, ids: Sequence[UUID], tenant: int) -> None:
        """Notes rows of a tenant that were published; returns at once."""
        for one in ids:
            self._later.take((tenant, one))

    async def _delete_all(self, batch: list[tuple[int, UUID]]) -> None:
        by_tenant: dict[int, list[UUID]] = defaultdict(list)
        for tenant, one in batch:
            by_tenant[tenant].append(one)
        for tenant, ids in by_tenant.items():
            try:
                await self._table.delete(ids, tenant)
            except ReverieError as error:
                log.info("clearing_left_to_relay", error=type(error).__name__, events=len(ids))
