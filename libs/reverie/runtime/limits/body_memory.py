"""Bounds the memory of request bodies that are kept before their sender is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from reverie.domain.core.errors import Overloaded


class UnverifiedBodies:
    """Collects bodies whose signature can be checked only at their end.

    All of them together take at most `max_bytes`; those of one address take `max_bytes_each`, so
    that a flood at one address leaves room for the others.
    """

    def __init__(self, max_bytes: int, max_bytes_each: int) -> None:
        self._max_bytes, self._max_bytes_each = max_bytes, max_bytes_each
        self._bytes_by_address = Counter[str]()
        self._running = 0

    async def collect(self, address: str, chunks: AsyncIterator[bytes]) -> bytes:
        """The whole body. Raises `Overloaded` if there is no room for it."""
        kept: list[bytes] = []
        self._running += 1
        try:
            async for chunk in chunks:
                kept.append(chunk)
                self._bytes_by_address[address] += len(chunk)
                if (
                    self._bytes_by_address[address] > self._max_bytes_each
                    or self._bytes_by_address.total() > self._max_bytes
                ):
                    raise Overloaded("deliveries", self._running, 0)
            return b"".join(kept)
        finally:
            self._running -= 1
            self._bytes_by_address[address] -= sum(map(len, kept))
            if not self._bytes_by_address[address]:
                del self._bytes_by_address[address]
