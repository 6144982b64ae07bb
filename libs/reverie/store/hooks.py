"""Push webhooks: whose they are, and the secrets that they are signed with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reverie.domain.access import Principal, Role
from reverie.domain.errors import NotFound
from reverie.store.database import Database
from reverie.store.effects import once
from reverie.store.sealing import Place, Sealer


@dataclass(frozen=True)
class Hook:
    """A webhook without its secret. Not `readable`: sealed under a master key that is not set."""

    project: str
    kind: str
    who: str
    readable: bool
    created: datetime
    updated: datetime


class Hooks:
    """The webhooks of all tenants, and who may speak for a project without a key."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._db = database
        self._sealer = sealer

    @property
    def seals(self) -> bool:
        """Whether secrets can be taken."""
        return self._sealer.newest is not None

    async def knows(self, tenant: int, project: str) -> bool:
        """Whether anything is known of a project."""
        return bool(await self._db.call("project_known", tenant, project))

    async def tenant_called(self, name: str) -> int | None:
        """The number of a tenant; None where there is none of that name."""
        number = await self._db.call("tenant_called", name)
        return None if number is None else int(number)

    async def find(self, tenant_name: str, project: str, kind: str) -> tuple[Principal, str] | None:
        """Who a webhook speaks for and its secret; None where none is set.

        Raises `Unavailable` where the secret's master key is missing.
        """
        found = await self._db.rows("hook_find", tenant_name, project, kind)
        if not found:
            return None
        row = found[0]
        secret = self._sealer.open(
            _place(row["tenant"], project, kind), row["sealed"], row["key_id"]
        )
        return announcer(row["tenant"], tenant_name, project, f"{kind} webhook"), str(secret)

    async def put(self, who: Principal, project: str, kind: str, secret: str) -> Hook:
        """Sets the secret of a webhook. Raises `Misconfigured` without a master key."""
        sealed, key_id = self._sealer.seal(_place(who.tenant, project, kind), secret)
        async with self._db.tenant(who.tenant) as tenant:
            row = await tenant.row("hook_set", project, kind, sealed, key_id, who.key_id)
        return self._hook(row)

    async def page(
        self,
        who: Principal,
        grants: Sequence[str],
        project: str | None,
        limit: int,
        after: tuple[str, str] = ("", ""),
    ) -> list[Hook]:
        """The webhooks of projects that the grants cover, after a project and a kind."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("hook_list", list(grants), project, *after, limit)
        return [self._hook(row) for row in found]

    async def delete(self, who: Principal, project: str, kind: str) -> None:
        """Takes a webhook's secret back. Raises `NotFound`."""
        async with self._db.tenant(who.tenant) as tenant:
            if not await once(tenant, "delete", lambda: tenant.value("hook_delete", project, kind)):
                raise NotFound(f"{kind} webhook of project", project)

    def _hook(self, row: Any) -> Hook:
        readable = self._sealer.holds(row["key_id"])
        names = ("project", "kind", "who", "created", "updated")
        return Hook(readable=readable, **{name: row[name] for name in names})


def announcer(tenant: int, name: str, project: str, who: str) -> Principal:
    """Who may announce the changes of one project and nothing else."""
    return Principal(tenant, name, who, Role.CI, (), (f"project/{project}",))


def _place(tenant: int, project: str, kind: str) -> Place:
    return Place(tenant, f"project/{project}", f"webhook {kind}")
