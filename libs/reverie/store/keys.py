"""API keys: hashed, shown once; and the answers kept for idempotency keys."""

from __future__ import annotations

from reverie.domain.access import Principal, Role
from reverie.domain.limits import least
from reverie.store.database import Database


class Keys:
    """Finds the principal behind a key."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def tenant_called(self, name: str) -> int | None:
        """The number of a tenant, for a token that names it."""
        number: int | None = await self._db.call("tenant_called", name)
        return number

    async def find(self, key_hash: bytes) -> Principal | None:
        """The holder of the key with this SHA-256, unless it is revoked or expired."""
        found = await self._db.rows("find_key", key_hash)
        if not found:
            return None
        row = found[0]
        return Principal(
            tenant=row["tenant"],
            tenant_name=row["tenant_name"],
            key_id=str(row["id"]),
            role=Role(row["role"]),
            reads=tuple(row["reads"]),
            writes=tuple(row["writes"]),
            project=row["project"],
            agent=row["agent"],
            limits=least(row["limits"]),
            tenant_limits=least(row["tenant_limits"], row["own_limits"]),
        )
