"""Idempotency keys in memory: the twin of those in the database."""

from __future__ import annotations

from reverie.domain.idempotency import Claim, StoredReply


class MemoryIdempotency:
    """An `IdempotencyStore` for one process; nothing expires."""

    def __init__(self) -> None:
        self._requests: dict[tuple[int, str], tuple[str, bytes]] = {}
        self._replies: dict[tuple[int, str], StoredReply] = {}

    async def begin(
        self, tenant: int, key: str, route: str, body_hash: bytes
    ) -> StoredReply | Claim:
        known = self._requests.get((tenant, key))
        if known is None:
            self._requests[tenant, key] = (route, body_hash)
            return Claim.MINE
        if known != (route, body_hash):
            return Claim.OTHER
        return self._replies.get((tenant, key), Claim.BUSY)

    async def finish(self, tenant: int, key: str, reply: StoredReply) -> None:
        self._replies[tenant, key] = reply

    async def abandon(self, tenant: int, key: str) -> None:
        if (tenant, key) not in self._replies:
            self._requests.pop((tenant, key), None)
