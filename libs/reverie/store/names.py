"""What people call scopes: the names behind their slugs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reverie.domain.access import Principal
from reverie.domain.errors import Invalid
from reverie.domain.scopes import above
from reverie.store.database import Database, Tenant


class Names:
    """The names of all tenants' scopes, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def keep(self, who: Principal, names: Mapping[str, str]) -> None:
        """Keeps the names of scopes. Raises `Invalid` where a scope stands for another name."""
        if not names:
            return
        taken = await self._db.call("keep_names", who.tenant, dict(names))
        if taken:
            raise Invalid("scope", f"{taken[0]} stands for another name: choose one that differs")


async def names_of(tenant: Tenant, reads: Iterable[str], scopes: Iterable[str]) -> dict[str, str]:
    """The names of scopes and of those above them that the grants cover."""
    path = list(dict.fromkeys(one for scope in scopes for one in above(scope)))
    found = await tenant.rows("scope_names", list(reads), path)
    return {row["scope"]: row["name"] for row in found}
