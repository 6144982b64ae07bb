"""Memories: written, read, listed, with their neighbours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from reverie.contracts.events import Outgoing, memory_subject, outgoing
from reverie.domain.access import Principal
from reverie.domain.errors import Conflict, Invalid, NotFound, ReverieError
from reverie.domain.ids import part_of_id
from reverie.domain.known_secrets import Outdated, epoch_in_force
from reverie.domain.memory import Memory, NewMemory, Status, Written
from reverie.store import rows
from reverie.store.database import Database, Tenant
from reverie.store.names import Names
from reverie.store.races import busy, retried
from reverie.store.short_ids import full_id, only_id

VISIBLE = (Status.ACTIVE.value, Status.SUPERSEDED.value)
NEIGHBOURS = 50
"""How many memories beside one are told of at most."""
_LINK_PROBLEMS = {
    "cycle": "an edge would close a causal cycle",
    "ring": "an edge would close a ring of tasks that wait for each other",
    "self": "an edge would lead from the memory to itself",
}


@dataclass(frozen=True)
class ListFilter:
    """What a list of memories is narrowed to; None means all."""

    scope: str | None = None
    kinds: Sequence[str] | None = None
    status: Sequence[str] = VISIBLE
    tag: str | None = None
    session: UUID | None = None
    valid_at: datetime | None = None
    key: str | None = None


@dataclass(frozen=True)
class Near:
    """A memory one edge away; `direction` is seen from the memory asked for."""

    id: UUID
    kind: str
    label: str
    type: str
    direction: str
    weight: float


class Memories:
    """The memories of all tenants, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._names = Names(database)

    async def remember(
        self,
        who: Principal,
        items: Sequence[NewMemory],
        headers: Mapping[str, str],
        request: str | None = None,
        place: str = "all",
    ) -> list[Written | ReverieError]:
        """Writes each item or says why not; what passes lands in one transaction.

        Raises `Outdated` where the vault's secrets changed since those in force were read.

        An item whose edges would close a cycle, or whose scope stands for another name, makes the
        rest land one by one. Answers in the order of the items. `headers` carry the trace to the
        consumers. `request`: the idempotency key that the caller has taken; what it wrote in
        that `place` is written once, whatever became of the answer.
        """
        payload = await self._landed(who, [rows.item(new, who.reads, who.actor) for new in items])
        try:
            await self._names.keep(who, {k: v for new in items for k, v in new.scope_names.items()})
            found = await self._call(who, payload, headers, (request, place))
        except Invalid as error:
            if len(items) == 1:
                return [error]
            return [
                (await self.remember(who, [new], headers, request, str(n)))[0]
                for n, new in enumerate(items)
            ]
        return [await self._outcome(who, new, one) for new, one in zip(items, found, strict=True)]

    async def _landed(self, who: Principal, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The items with every edge to a merged memory led to what that went into."""
        edges = [edge for item in items for edge in item.get("edges", ())]
        if edges:
            async with self._db.tenant(who.tenant) as tenant:
                found = await tenant.rows("merged_ends", [UUID(edge["to"]) for edge in edges])
            ends = {str(row["id"]): str(row["into"]) for row in found}
            for edge in edges:
                edge["to"] = ends.get(edge["to"], edge["to"])
        return items

    async def _call(
        self,
        who: Principal,
        payload: list[dict[str, Any]],
        headers: Mapping[str, str],
        request: tuple[str | None, str],
    ) -> list[dict[str, Any]]:
        try:
            found = await retried(
                lambda: self._db.rows(
                    *("remember", who.tenant, who.tenant_name, payload, dict(headers)),
                    *(epoch_in_force(), *request),
                ),
                "the key",
            )
        except asyncpg.PostgresError as error:
            if error.sqlstate == "RV002":
                raise Outdated from error
            if error.sqlstate != "RV001":
                raise
            raise Invalid("edges", _LINK_PROBLEMS[json.loads(str(error))["problem"]]) from error
        return [row[0] for row in found]

    async def _outcome(
        self, who: Principal, new: NewMemory, one: dict[str, Any]
    ) -> Written | ReverieError:
        match one.get("problem"):
            case None:
                return rows.written(one)
            case "conflict":
                return Conflict(
                    f"key {new.key!r} is active in {new.scope}: supersede_reason would replace it",
                    await self._current(who, UUID(one["id"])),
                )
            case "missing_edge":
                return Invalid("edges", f"there is no memory {one['to']} to link to")
            case _:
                return busy("the memory")

    async def _current(self, who: Principal, memory: UUID) -> dict[str, Any] | None:
        """What stands under a key; None for a key that may write there and not read."""
        try:
            found = await self.get(who, memory)
        except NotFound:
            return None
        return {"id": str(found.id), "content": found.content, "version": found.version}

    async def get(self, who: Principal, memory: UUID) -> Memory:
        """One memory. Raises `NotFound` also where the key may not read it."""
        async with self._db.looking(who.tenant) as tenant:
            return await _memory(tenant, who, memory)

    async def shown(
        self, who: Principal, named: UUID, limit: int = NEIGHBOURS
    ) -> tuple[Memory, list[Near]]:
        """A memory, or what it was merged into, and what lies one edge away, all of one moment.

        The strongest `limit` edges to what the key may read. Raises as `get` does.
        """
        async with self._db.looking(who.tenant) as tenant:
            memory = await _memory(tenant, who, named)
            if memory.status is Status.SUPERSEDED:
                end = await tenant.value("merged_end", named, list(who.reads))
                memory = await _memory(tenant, who, end) if end else memory
            return memory, await _near(tenant, who, memory.id, limit)

    async def resolve(self, who: Principal, text: str) -> UUID:
        """The id that a full or short form means: of a merged one, of what it went into.

        Raises `NotFound` or `Invalid`.
        """
        named = await self.named(who, text)
        return await self.merged_into(who, named) or named

    async def merged_into(self, who: Principal, memory: UUID) -> UUID | None:
        """The memory that this one went into, over all merges; None where it stands for itself."""
        async with self._db.looking(who.tenant) as tenant:
            end = await tenant.value("merged_end", memory, list(who.reads))
        return UUID(str(end)) if end else None

    async def named(self, who: Principal, text: str) -> UUID:
        """The id that a full or short form names, merged or not. Raises as `resolve` does."""
        if (part := part_of_id(text)) is None:
            return parse_id(text)
        given = (part.digits, part.low, part.high)
        async with self._db.looking(who.tenant) as tenant:
            found = await tenant.rows("memory_resolve", *given, list(who.reads))
        return only_id("memory", text, found)

    async def page(
        self, who: Principal, below: UUID | None, limit: int, only: ListFilter
    ) -> list[Memory]:
        """Memories newest first, below the id `below`; anchors only where their kind is asked."""
        async with self._db.looking(who.tenant) as tenant:
            found = await tenant.rows(
                "memory_list",
                list(who.reads),
                below,
                only.scope,
                only.kinds,
                list(only.status),
                only.tag,
                only.session,
                limit,
                only.valid_at,
                only.key,
            )
        return [rows.memory(row) for row in found]


def events_of(who: Principal, written: Written, headers: Mapping[str, str]) -> list[Outgoing]:
    """The outbox rows that a write left, to be published after the reply; none on a duplicate."""
    old = written.superseded
    told = [("superseded", old.id, old.version, old.event)] if old else []
    if written.event is not None:
        told.append(("remembered", written.id, written.version, written.event))
    return [
        outgoing(
            who.tenant,
            memory_subject(who.tenant_name, name),
            {"id": str(memory), "version": version},
            headers,
            event,
        )
        for name, memory, version, event in told
    ]


def parse_id(text: str) -> UUID:
    """A full id. Raises `Invalid`."""
    full = full_id(text)
    if full is None:
        raise Invalid("id", f"{text[:40]!r} is not an id")
    return full


async def _memory(tenant: Tenant, who: Principal, memory: UUID) -> Memory:
    row = await tenant.row("memory_get", memory, list(who.reads))
    if row is None:
        raise NotFound("memory", str(memory))
    return rows.memory(row)


async def _near(
    tenant: Tenant, who: Principal, memory: UUID, limit: int = NEIGHBOURS
) -> list[Near]:
    found = await tenant.rows("memory_neighbours", memory, list(who.reads), limit)
    return [
        Near(r["id"], r["kind"], r["label"], r["type"], r["direction"], r["weight"]) for r in found
    ]
