"""Stores the audit log and reads it page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from reverie.domain.access.audit import AuditEntry
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import NotFound
from reverie.store.db.database import Database


@dataclass(frozen=True)
class AuditFilter:
    """The filter of audit records; None is any.

    `actor`: an agent, or a key by its id or actor name. `action`: words in it; `subject`: an id or
    name.
    """

    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    changes: bool | None = None
    since: datetime | None = None
    until: datetime | None = None


class AuditTable:
    """Written by every service, read by who administers the tenant."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def add(self, tenant: int, entries: Sequence[AuditEntry]) -> None:
        """Stores audit records of one tenant.

        Raises `NotFound` if the tenant was deleted, and `Unavailable`.
        """
        try:
            async with self._db.tenant_transaction(tenant) as connection:
                rows = [_encode_entry(entry) for entry in entries]
                await connection.execute_many("audit_add", rows)
        except Exception:
            async with self._db.tenant_transaction(tenant) as connection:
                if not await connection.fetch_value("audit_tenant_exists"):
                    raise NotFound("tenant", str(tenant)) from None
            raise

    async def page(
        self, principal: Principal, filters: AuditFilter, below: UUID | None, limit: int
    ) -> list[AuditEntry]:
        """Lists audit records of the caller's tenant, newest first, below the id if given.

        Raises `Forbidden` unless this is an admin's key of the whole tenant.
        """
        principal.check_admin()
        principal.check_read(["*"])
        args = (
            below, filters.actor, filters.action, filters.subject, filters.changes,
            filters.since, filters.until, limit,
        )  # fmt: skip
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows("audit_page", *args)
        return [AuditEntry(**{**row, "subjects": tuple(row["subjects"])}) for row in found]

    async def sweep(self, seconds: float) -> int:
        """Deletes older records, of all tenants; returns the count."""
        return int(await self._db.call("delete_old_rows", "audit", timedelta(seconds=seconds)))


def _make_storable(value: object) -> object:
    """The value without characters that Postgres refuses: clients choose names in paths."""
    if isinstance(value, list):
        return [_make_storable(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    return value


def _encode_entry(entry: AuditEntry) -> tuple[object, ...]:
    values = (
        entry.id,
        entry.at,
        entry.key,
        entry.actor,
        entry.service,
        entry.action,
        entry.changes,
        entry.status,
        entry.problem,
        list(entry.subjects),
        entry.trace_id,
        entry.client,
    )
    return tuple(_make_storable(value) for value in values)
