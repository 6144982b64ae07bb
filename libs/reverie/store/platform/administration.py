"""Administers a tenant: keys, scopes, projects, and deletion of scopes or all data."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.domain.access.principals import TENANT_DELETION_PATTERN, Principal, hash_key
from reverie.domain.access.scopes import scope_matches
from reverie.domain.core.errors import Conflict, Forbidden, NotFound
from reverie.domain.core.ids import new_id
from reverie.store.db.database import Database, TenantConnection
from reverie.store.db.idempotency import run_once
from reverie.store.platform.api_keys import NewApiKey, generate_key_text, normalize_key
from reverie.store.platform.event_visibility import CursorCipher, load_cursor_cipher

BATCH_SIZE = 2000
_WAIT_SECONDS = 10.0


@dataclass(frozen=True)
class ApiKey:
    """A key of a tenant, without its text."""

    id: UUID
    label: str
    role: str
    reads: list[str]
    writes: list[str]
    project: str | None
    agent: str | None
    user: str | None
    created: datetime
    expires_at: datetime | None
    revoked: datetime | None
    limits: Mapping[str, int] = field(default_factory=dict)
    previous_expires_at: datetime | None = None


@dataclass(frozen=True)
class ScopeContentCounts:
    """Row counts of a scope."""

    scope: str
    name: str | None
    kinds: dict[str, int]
    statuses: dict[str, int]
    sessions: int


@dataclass(frozen=True)
class ProjectContentCounts:
    """Row counts of a project and its branches."""

    project: str
    name: str | None
    scopes: int
    memories: int
    sessions: int
    changes: int


class AdministrationStore:
    """Keys, scopes and the end of a tenant; every call within one tenant."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def list_keys(self, principal: Principal, after: UUID | None, limit: int) -> list[ApiKey]:
        """Keys that may no more than the caller, in the order of their creation."""
        keys: list[ApiKey] = []
        async with self._db.tenant_transaction(principal.tenant) as connection:
            while rows := await connection.fetch_rows("admin_keys", after, limit):
                keys += [ApiKey(**row) for row in rows if _is_manageable(principal, row)]
                after = rows[-1]["id"]
                if len(keys) >= limit or len(rows) < limit:
                    break
        return keys[:limit]

    async def add_key(
        self, principal: Principal, new: NewApiKey, expires: datetime | None
    ) -> tuple[ApiKey, str]:
        """Creates a key of the caller's tenant; returns it and its text, which is not stored.

        Raises `InvalidInput` naming the field, `Forbidden` for a grant that the caller lacks.
        """
        new = normalize_key(new)
        principal.check_grant(new.reads, new.writes, new.agent, new.user)
        text = generate_key_text()
        reads, writes = list(new.reads), list(new.writes)
        owners = (new.project, new.agent, new.user)
        fields = (new.label, new.role.value, reads, writes, *owners, expires)

        async def add() -> str:
            key_id = new_id()
            await connection.fetch_rows(
                "admin_key_add", key_id, hash_key(text), *fields, dict(new.limits)
            )
            return str(key_id)

        async with self._db.tenant_transaction(principal.tenant) as connection:
            await _check_within_own(connection, principal, new.limits, expires)
            key_id = UUID(await run_once(connection, "key", add))
            await _set_key_text(connection, key_id, text)
            return await _load_manageable_key(connection, principal, key_id), text

    async def revoke_key(self, principal: Principal, key_id: UUID) -> None:
        """Ends a key. Raises `NotFound`, and `Forbidden` for one that may more than the caller."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            await _load_manageable_key(connection, principal, key_id)
            await connection.fetch_value("admin_key_revoke", key_id)

    async def get_key(self, principal: Principal, key_id: UUID) -> ApiKey:
        """A key. Raises `NotFound`, and `Forbidden` for one that may more than the caller."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            return await _load_manageable_key(connection, principal, key_id)

    async def update_key(
        self, principal: Principal, key_id: UUID, changes: Mapping[str, Any]
    ) -> ApiKey:
        """Changes `label`, `expires_at` or `limits`. Raises `NotFound`, `Forbidden`."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            current = await _load_manageable_key(connection, principal, key_id)
            return await _change_key(connection, principal, current, changes)

    async def rotate_key(
        self, principal: Principal, key_id: UUID, overlap: float, changes: Mapping[str, Any]
    ) -> tuple[ApiKey, str]:
        """Gives a key another text, which is not kept; the old one works `overlap` seconds more.

        `changes` as in `update_key`. Raises `NotFound`, `Forbidden`, `Conflict`.
        """
        text = generate_key_text()

        async def rotate() -> bool:
            current = await _load_manageable_key(connection, principal, key_id)
            if current.revoked is not None:
                raise Conflict("this key was revoked: make a new one")
            await connection.fetch_rows("admin_key_rotate", key_id, hash_key(text), overlap)
            await _change_key(connection, principal, current, changes)
            return True

        async with self._db.tenant_transaction(principal.tenant) as connection:
            await run_once(connection, "key", rotate)
            await _set_key_text(connection, key_id, text)
            return await _load_manageable_key(connection, principal, key_id), text

    async def list_scopes(
        self, principal: Principal, after: str | None, limit: int
    ) -> list[ScopeContentCounts]:
        """Scopes that the key may read, by name."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows("admin_scopes", list(principal.reads), after, limit)
        return [ScopeContentCounts(**row) for row in found]

    async def list_projects(
        self, principal: Principal, after: str | None, limit: int
    ) -> list[ProjectContentCounts]:
        """Projects of which the key may read something, by name."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "admin_projects", list(principal.reads), after, limit
            )
        return [ProjectContentCounts(**row) for row in found]

    async def find_existing_ids(self, principal: Principal, ids: Sequence[UUID]) -> set[UUID]:
        """Which of the ids are memories of the tenant, of any status."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            return {
                row["id"] for row in await connection.fetch_rows("existing_memory_ids", list(ids))
            }

    async def load_cursor_cipher(self, principal: Principal) -> CursorCipher:
        """Loads the cipher for the resume token of a deletion. Raises `Unauthenticated`."""
        return await load_cursor_cipher(self._db, principal)

    async def delete_scope(
        self, principal: Principal, patterns: Sequence[str]
    ) -> AsyncIterator[Counter[str]]:
        """Deletes all data of the covered scopes, a batch at a time; yields row counts by table."""
        args = (list(patterns), find_whole_project(patterns), BATCH_SIZE)
        while True:
            async with self._db.tenant_transaction(principal.tenant) as connection:
                found = await connection.fetch_rows("scope_delete_batch", *args)
            if not found:
                return
            yield Counter({row["name"]: row["gone"] for row in found})

    async def delete_tenant(
        self, principal: Principal, batch: int = BATCH_SIZE
    ) -> AsyncIterator[Counter[str]]:
        """Disables a tenant and deletes every row of it; yields row counts by table, batch by
        batch.

        Other keys are revoked first and the caller's last, so that an interrupted deletion can be
        requested again. The tenant writes nothing from the start on. A second pass deletes what was
        being written in the meantime.
        """
        async with self._db.tenant_transaction(principal.tenant) as connection:
            await connection.fetch_rows(
                "tenant_keys_revoke", _own_key_id(principal), [TENANT_DELETION_PATTERN]
            )
            tables = [row["name"] for row in await connection.fetch_rows("tenant_tables")]
        async for deleted in self._delete_all_rows(principal.tenant, tables[:-1], batch):
            yield deleted
        async with self._db.tenant_transaction(principal.tenant) as connection:
            keys = await connection.fetch_value("tenant_delete_batch", tables[-1], 1_000_000)
            ended = await connection.fetch_value("tenant_end")
        yield Counter({tables[-1]: keys, "tenant": 1})
        await self._wait_for_older_transactions(ended)
        async for deleted in self._delete_all_rows(principal.tenant, tables, batch):
            yield deleted

    async def _delete_all_rows(
        self, tenant: int, tables: Sequence[str], batch: int
    ) -> AsyncIterator[Counter[str]]:
        """Deletes from all tables; repeats if a deletion itself added a row."""
        deleted_any = True
        while deleted_any:
            deleted_any = False
            for table in tables:
                while deleted := await self._db.call("tenant_delete_batch", tenant, table, batch):
                    deleted_any = True
                    yield Counter({table: deleted})

    async def _wait_for_older_transactions(self, transaction: str) -> None:
        """Waits, with a time limit, until transactions from before a tenant's end are over."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while not await self._db.call("older_transactions_ended", transaction):
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.02)


async def _set_key_text(connection: TenantConnection, key_id: UUID, text: str) -> None:
    """Sets a new text for a key: if its response was lost, nobody knows the text."""
    await connection.fetch_rows("admin_key_set_text", key_id, hash_key(text))


async def _change_key(
    connection: TenantConnection, principal: Principal, current: ApiKey, changes: Mapping[str, Any]
) -> ApiKey:
    changed = replace(current, **changes)
    if changes.keys() & {"limits", "expires_at"}:
        await _check_within_own(connection, principal, changed.limits, changed.expires_at)
    fields = (changed.label, changed.expires_at, dict(changed.limits))
    await connection.fetch_rows("admin_key_change", changed.id, *fields)
    return changed


async def _load_manageable_key(
    connection: TenantConnection, principal: Principal, key_id: UUID
) -> ApiKey:
    """Loads a key with no more rights than the caller. Raises `NotFound`, `Forbidden`."""
    row = await connection.fetch_row("admin_key_get", key_id)
    if row is None:
        raise NotFound("key", str(key_id))
    principal.check_grant(row["reads"], row["writes"], row["agent"], row["user"])
    return ApiKey(**row)


def _is_manageable(principal: Principal, row: Any) -> bool:
    try:
        principal.check_grant(row["reads"], row["writes"], row["agent"], row["user"])
    except Forbidden:
        return False
    return True


async def _check_within_own(
    connection: TenantConnection,
    principal: Principal,
    limits: Mapping[str, int],
    expires_at: datetime | None,
) -> None:
    """Raises `Forbidden` if an admin of a part of the tenant gives a key, such as its own, higher
    limits or a later expiry than it has itself.
    """
    if "*" in principal.reads and "*" in principal.writes:
        return
    own_id = _own_key_id(principal)
    own = await connection.fetch_row("admin_key_get", own_id) if own_id else None
    own_limits, own_end = (own["limits"], own["expires_at"]) if own else ({}, None)
    own_end = principal.token_expires_at or own_end
    for name, own_limit in own_limits.items():
        limit = limits.get(name)
        if limit is None or limit > own_limit:
            raise Forbidden(f"set {name} above its own {own_limit} in", "*")
    if own_end is not None and (expires_at is None or expires_at > own_end):
        raise Forbidden(f"set an expiry after its own {own_end:%Y-%m-%dT%H:%M:%SZ} in", "*")


def find_whole_project(patterns: Sequence[str]) -> str | None:
    """The project that the patterns cover with all below it: its files and changes go too."""
    for pattern in patterns:
        head, _, name = pattern.removesuffix("/*").partition("/")
        if (
            head == "project"
            and name
            and "/" not in name
            and scope_matches(pattern, f"project/{name}/topic/x")
        ):
            return name
    return None


def _own_key_id(principal: Principal) -> UUID | None:
    try:
        return UUID(principal.key_id)
    except ValueError:
        return None


def sum_batches(batches: Sequence[Counter[str]]) -> dict[str, int]:
    """The rows of all batches by table."""
    totals: Counter[str] = sum(batches, Counter())
    return dict(sorted(totals.items()))
