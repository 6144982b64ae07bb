"""Deletes published events from the outbox later, many in one statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

import structlog

from reverie.domain.core.errors import ReverieError
from reverie.runtime.process.asyncio_helpers import BatchWriter
from reverie.store.db.database import Database
from reverie.store.platform.outbox import OutboxTable

log = structlog.get_logger("reverie.ingest")

BATCH_PAUSE = 0.1
MAX_PENDING_DELETIONS = 10_000
"""Deletions that wait at most; of more the rows stay, for the relay to publish once more."""


class BufferedOutbox:
    """The outbox, whose rows are deleted outside of requests.

    If a process is killed before a deletion, the event is published again, which is harmless.
    """

    def __init__(self, database: Database) -> None:
        self._table = table = OutboxTable(database)
        self._writer = BatchWriter(self._delete_all, MAX_PENDING_DELETIONS, BATCH_PAUSE)
        self.claim, self.age = table.claim, table.age
        self.run = self._writer.run

    async def delete(self, ids: Sequence[UUID], tenant: int) -> None:
        """Queues published rows of a tenant for deletion; returns at once."""
        for event_id in ids:
            self._writer.add((tenant, event_id))

    async def _delete_all(self, batch: list[tuple[int, UUID]]) -> None:
        by_tenant: dict[int, list[UUID]] = defaultdict(list)
        for tenant, event_id in batch:
            by_tenant[tenant].append(event_id)
        for tenant, ids in by_tenant.items():
            try:
                await self._table.delete(ids, tenant)
            except ReverieError as error:
                log.info("outbox_cleanup_deferred", error=type(error).__name__, events=len(ids))
