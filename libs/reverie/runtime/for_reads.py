"""Idempotency keys of what only reads: it is answered whether or not its key can be looked up."""

from __future__ import annotations

import structlog

from reverie.domain.errors import Unavailable
from reverie.domain.idempotency import Claim, StoredReply
from reverie.runtime.idempotency import IdempotencyStore
from reverie.runtime.timely import timely

log = structlog.get_logger()

SECONDS = 1.0
"""How long the store is waited for, before a read and after it."""


class ForReads:
    """A store as one read has it: where that is away or late, it is as if no key had come."""

    def __init__(self, store: IdempotencyStore) -> None:
        self._store = store
        self._claimed = False

    async def begin(
        self, tenant: int, key: str, route: str, body_hash: bytes | None
    ) -> StoredReply | Claim:
        """What the store says in time; else that nobody has answered the request."""
        try:
            found = await timely(self._store.begin(tenant, key, route, body_hash), SECONDS)
        except (TimeoutError, Unavailable) as error:
            log.warning("idempotency_not_looked_up", error=type(error).__name__)
            return Claim.MINE
        self._claimed = found is Claim.MINE
        return found

    async def finish(self, tenant: int, key: str, reply: StoredReply) -> None:
        """Keeps the answer of a key that was claimed."""
        if self._claimed:
            await timely(self._store.finish(tenant, key, reply), SECONDS)

    async def renew(self, tenant: int, key: str) -> None:
        """Lets a claim stand longer."""
        if self._claimed:
            await self._store.renew(tenant, key)

    async def abandon(self, tenant: int, key: str) -> None:
        """Frees a key that was claimed."""
        if self._claimed:
            await timely(self._store.abandon(tenant, key), SECONDS)
