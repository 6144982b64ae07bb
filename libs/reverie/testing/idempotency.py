"""Idempotency keys in memory: the twin of those in the database."""

from __future__ import annotations

from dataclasses import replace

from reverie.domain.idempotency import Claim, StoredReply


class MemoryIdempotency:
    """An `IdempotencyStore` for one process; nothing expires."""

    def __init__(self) -> None:
        self._requests: dict[tuple[int, str], tuple[str, bytes]] = {}
        self._replies: dict[tuple[int, str], StoredReply] = {}

    async def begin(
        self, tenant: int, key: str, route: str, body_hash: bytes | None
    ) -> StoredReply | Claim:
        known = self._requests.get((tenant, key))
        if known is None:
            self._requests[tenant, key] = (route, body_hash or b"")
            return Claim.MINE
        if known[0] != route or body_hash not in (None, known[1]):
            return Claim.OTHER
        return self._replies.get((tenant, key), Claim.BUSY)

    async def finish(self, tenant: int, key: str, reply: StoredReply) -> None:
        route, known = self._requests[tenant, key]
        asked = reply.asked or known
        self._requests[tenant, key] = (route, asked)
        self._replies[tenant, key] = replace(reply, asked=asked)

    async def renew(self, tenant: int, key: str) -> None:
        """Nothing expires."""

    async def abandon(self, tenant: int, key: str) -> None:
        if (tenant, key) not in self._replies:
            self._requests.pop((tenant, key), None)
