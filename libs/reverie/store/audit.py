"""Who read and changed what, kept for as long as is set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.audit import Audited
from reverie.store.database import Database


@dataclass(frozen=True)
class Sought:
    """Which notes are looked for; None is any. `who`: an agent, or a key by its id or actor name.
    `action`: words in it; `subject`: an id or name."""

    who: str | None = None
    action: str | None = None
    subject: str | None = None
    changes: bool | None = None
    since: datetime | None = None
    until: datetime | None = None


class AuditTable:
    """Written by every service, read by who administers the tenant."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def add(self, tenant: int, notes: Sequence[Audited]) -> None:
        """Keeps notes on one tenant. Raises `Unavailable`."""
        async with self._db.tenant(tenant) as t:
            await t.many("audit_add", [_row(one) for one in notes])

    async def page(
        self, who: Principal, sought: Sought, below: UUID | None, limit: int
    ) -> list[Audited]:
        """Notes of the caller's tenant, the newest first, below the id where one is given.

        Raises `Forbidden` unless this is an admin's key of the whole tenant.
        """
        who.check_admin()
        who.check_read(["*"])
        asked = (
            below, sought.who, sought.action, sought.subject, sought.changes,
            sought.since, sought.until, limit,
        )  # fmt: skip
        async with self._db.tenant(who.tenant) as t:
            found = await t.rows("audit_page", *asked)
        return [Audited(**{**row, "subjects": tuple(row["subjects"])}) for row in found]

    async def sweep(self, seconds: float) -> int:
        """Forgets notes older than that, of all tenants; says how many."""
        found = await self._db.rows("audit_sweep", seconds)
        return int(found[0][0])


def _row(one: Audited) -> tuple[object, ...]:
    return (
        one.id,
        one.at,
        one.key,
        one.who,
        one.service,
        one.action,
        one.changes,
        one.status,
        one.problem,
        list(one.subjects),
        one.trace,
        one.client,
    )
