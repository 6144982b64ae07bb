"""Keys in memory: the twin of those in the database."""

from __future__ import annotations

from reverie.domain.access import Principal, Role, key_hash
from reverie.domain.errors import Unavailable


class MemoryKeys:
    """A `KeyFinder` over keys that a test hands out; `down` makes it fail as a store does."""

    def __init__(self) -> None:
        self._holders: dict[bytes, Principal] = {}
        self.down = False
        self.lookups = 0

    def add(self, key: str, principal: Principal) -> None:
        """Makes a key known."""
        self._holders[key_hash(key)] = principal

    def revoke(self, key: str) -> None:
        """Makes a key unknown again."""
        self._holders.pop(key_hash(key), None)

    async def find(self, key_hash: bytes) -> Principal | None:
        self.lookups += 1
        if self.down:
            raise Unavailable("the database", "is it running?")
        return self._holders.get(key_hash)


def principal(
    tenant: int = 1, role: Role = Role.WRITER, scopes: tuple[str, ...] = ("*",)
) -> Principal:
    """A holder that reads and writes `scopes`."""
    return Principal(tenant, f"tenant-{tenant}", f"key-{tenant}-{role}", role, scopes, scopes)
