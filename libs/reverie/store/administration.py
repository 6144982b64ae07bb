"""What an administrator does to a tenant: its keys, projects, scopes, and its end."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.domain.access import ENDING, Principal, key_hash
from reverie.domain.errors import Conflict, NotFound
from reverie.domain.ids import new_id
from reverie.domain.scopes import matches
from reverie.store.bootstrap import NewKey, checked, new_key_text
from reverie.store.database import Database, Tenant
from reverie.store.effects import once
from reverie.store.marks import Marks, marks_of

BATCH = 2000
_OLDER_SECONDS = 10.0


@dataclass(frozen=True)
class Key:
    """A key of a tenant, without its text."""

    id: UUID
    label: str
    role: str
    reads: list[str]
    writes: list[str]
    project: str | None
    agent: str | None
    created: datetime
    expires: datetime | None
    revoked: datetime | None
    limits: Mapping[str, int] = field(default_factory=dict)
    old_until: datetime | None = None


@dataclass(frozen=True)
class ScopeCounts:
    """What lies in a scope."""

    scope: str
    name: str | None
    kinds: dict[str, int]
    statuses: dict[str, int]
    sessions: int


@dataclass(frozen=True)
class ProjectCounts:
    """What lies in a project and below it."""

    project: str
    name: str | None
    scopes: int
    memories: int
    sessions: int
    changes: int


class Administration:
    """Keys, scopes and the end of a tenant; every call within one tenant."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def keys(self, who: Principal, after: UUID | None, limit: int) -> list[Key]:
        """Keys of the tenant in the order of their making."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("admin_keys", after, limit)
        return [Key(**row) for row in found]

    async def add_key(
        self, who: Principal, new: NewKey, expires: datetime | None
    ) -> tuple[Key, str]:
        """Makes a key of the caller's tenant; answers it and its text, which is not kept.

        Raises `Invalid` naming the field, `Forbidden` for a grant that the caller does not hold.
        """
        new = checked(new)
        who.check_grant(new.reads, new.writes, new.agent)
        text = new_key_text()
        reads, writes = list(new.reads), list(new.writes)
        given = (new.label, new.role.value, reads, writes, new.project, new.agent, expires)

        async def add() -> str:
            number = new_id()
            await tenant.rows("admin_key_add", number, key_hash(text), *given, dict(new.limits))
            return str(number)

        async with self._db.tenant(who.tenant) as tenant:
            number = UUID(await once(tenant, "key", add))
            await _shown(tenant, number, text)
            return await _held(tenant, who, number), text

    async def revoke_key(self, who: Principal, key: UUID) -> None:
        """Ends a key. Raises `NotFound`, and `Forbidden` for one that may more than the caller."""
        async with self._db.tenant(who.tenant) as tenant:
            await _held(tenant, who, key)
            await tenant.value("admin_key_revoke", key)

    async def key(self, who: Principal, key: UUID) -> Key:
        """A key. Raises `NotFound`, and `Forbidden` for one that may more than the caller."""
        async with self._db.tenant(who.tenant) as tenant:
            return await _held(tenant, who, key)

    async def change_key(self, who: Principal, key: UUID, changes: Mapping[str, Any]) -> Key:
        """Changes `label`, `expires` or `limits`. Raises `NotFound`, `Forbidden`."""
        async with self._db.tenant(who.tenant) as tenant:
            changed = replace(await _held(tenant, who, key), **changes)
            limits = dict(changed.limits)
            await tenant.rows("admin_key_change", key, changed.label, changed.expires, limits)
        return changed

    async def rotate_key(
        self, who: Principal, key: UUID, overlap: float, changes: Mapping[str, Any]
    ) -> tuple[Key, str]:
        """Gives a key another text, which is not kept; the old one works `overlap` seconds more.

        `expires` gives it another end. Raises `NotFound`, `Forbidden`, `Conflict`.
        """
        text = new_key_text()

        async def rotate() -> bool:
            held = await _held(tenant, who, key)
            if held.revoked is not None:
                raise Conflict("this key was revoked: make a new one")
            await tenant.rows("admin_key_rotate", key, key_hash(text), overlap)
            held = replace(held, **changes)
            limits = dict(held.limits)
            await tenant.rows("admin_key_change", key, held.label, held.expires, limits)
            return True

        async with self._db.tenant(who.tenant) as tenant:
            await once(tenant, "key", rotate)
            await _shown(tenant, key, text)
            return await _held(tenant, who, key), text

    async def scopes(self, who: Principal, after: str | None, limit: int) -> list[ScopeCounts]:
        """Scopes that the key may read, by name."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("admin_scopes", list(who.reads), after, limit)
        return [ScopeCounts(**row) for row in found]

    async def projects(self, who: Principal, after: str | None, limit: int) -> list[ProjectCounts]:
        """Projects of which the key may read something, by name."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("admin_projects", list(who.reads), after, limit)
        return [ProjectCounts(**row) for row in found]

    async def standing(self, who: Principal, ids: Sequence[UUID]) -> set[UUID]:
        """Which of the ids are memories of the tenant, of any status."""
        async with self._db.tenant(who.tenant) as tenant:
            return {row["id"] for row in await tenant.rows("memories_standing", list(ids))}

    async def marks(self, who: Principal) -> Marks:
        """What the place of a deletion on the bus is told by. Raises `Unauthenticated`."""
        return await marks_of(self._db, who)

    async def delete_scope(
        self, who: Principal, patterns: Sequence[str], batch: int = BATCH
    ) -> AsyncIterator[Counter[str]]:
        """Deletes all that lies in the covered scopes, a batch at a time; yields rows by table."""
        while gone := await self._sweep(who, patterns, whole_project(patterns), batch):
            yield gone

    async def _sweep(
        self, who: Principal, patterns: Sequence[str], project: str | None, batch: int
    ) -> Counter[str]:
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("scope_sweep", list(patterns), project, batch)
        return Counter({row["name"]: row["gone"] for row in found})

    async def delete_tenant(
        self, who: Principal, batch: int = BATCH
    ) -> AsyncIterator[Counter[str]]:
        """Ends a tenant and deletes every row of it; yields rows by table, batch by batch.

        Its keys but the caller's end first and the caller's last, so that a deletion that broke off
        can be asked for again; from the first moment on it writes nothing. What was being written
        meanwhile goes in a second walk.
        """
        async with self._db.tenant(who.tenant) as tenant:
            await tenant.rows("tenant_keys_end", _own(who), [ENDING])
            tables = [row["name"] for row in await tenant.rows("tenant_tables")]
        async for gone in self._walk(who.tenant, tables[:-1], batch):
            yield gone
        async with self._db.tenant(who.tenant) as tenant:
            keys = await tenant.value("tenant_sweep", tables[-1], 1_000_000)
            ended = await tenant.value("tenant_end")
        yield Counter({tables[-1]: keys, "tenant": 1})
        await self._older_ended(ended)
        async for gone in self._walk(who.tenant, tables, batch):
            yield gone

    async def _walk(
        self, tenant: int, tables: Sequence[str], batch: int
    ) -> AsyncIterator[Counter[str]]:
        """Deletes from all tables, again where a deletion itself left a row in one."""
        found = True
        while found:
            found = False
            for table in tables:
                while gone := await self._db.call("tenant_sweep", tenant, table, batch):
                    found = True
                    yield Counter({table: gone})

    async def _older_ended(self, transaction: str) -> None:
        """Waits, not for ever, until what ran beside the end of a tenant has ended too."""
        give_up = time.monotonic() + _OLDER_SECONDS
        while not await self._db.call("none_older", transaction):
            if time.monotonic() > give_up:
                return
            await asyncio.sleep(0.02)


async def _shown(tenant: Tenant, key: UUID, text: str) -> None:
    """The text that a key has now: one whose answer was lost is known to nobody."""
    await tenant.rows("admin_key_shown", key, key_hash(text))


async def _held(tenant: Tenant, who: Principal, key: UUID) -> Key:
    """A key that may no more than the caller. Raises `NotFound`, `Forbidden`."""
    row = await tenant.row("admin_key_get", key)
    if row is None:
        raise NotFound("key", str(key))
    who.check_grant(row["reads"], row["writes"], row["agent"])
    return Key(**row)


def whole_project(patterns: Sequence[str]) -> str | None:
    """The project that the patterns cover with all below it: its files and changes go too."""
    for pattern in patterns:
        head, _, name = pattern.removesuffix("/*").partition("/")
        if (
            head == "project"
            and name
            and "/" not in name
            and matches(pattern, f"project/{name}/topic/x")
        ):
            return name
    return None


def _own(who: Principal) -> UUID | None:
    try:
        return UUID(who.key_id)
    except ValueError:
        return None


def total(batches: Sequence[Counter[str]]) -> dict[str, int]:
    """The rows of all batches by table."""
    whole: Counter[str] = sum(batches, Counter())
    return dict(sorted(whole.items()))
