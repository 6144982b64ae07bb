"""Writes, reads and lists memories, stores verified facts and the names of scopes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from reverie.contracts.events import OutgoingEvent, build_outgoing_event, memory_subject
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import list_named_prefixes
from reverie.domain.core.errors import Conflict, InvalidInput, NotFound, ReverieError, TenantFull
from reverie.domain.core.ids import parse_id_fragment
from reverie.domain.core.memory import Memory, MemoryStatus, NewMemory, WriteResult
from reverie.domain.redaction.vault_secrets import OutdatedSecrets
from reverie.store.db import row_mapping
from reverie.store.db.database import Database, TenantConnection
from reverie.store.db.idempotency import build_busy_error, call_once, retry_on_conflict
from reverie.store.db.short_ids import parse_full_id, require_single_match


class ScopeNameStore:
    """The names of all tenants' scopes, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def save(self, principal: Principal, names: Mapping[str, str]) -> None:
        """Saves the names of scopes.

        Raises `InvalidInput` if a scope already has another name.
        """
        if not names:
            return
        taken = await self._db.call("put_scope_names", principal.tenant, dict(names))
        if taken:
            raise InvalidInput(
                "scope", f"{taken[0]} stands for another name: choose one that differs"
            )


async def load_scope_names(
    connection: TenantConnection, reads: Iterable[str], scopes: Iterable[str]
) -> dict[str, str]:
    """The names of scopes and of those above them that the grants cover."""
    scope_path = list(
        dict.fromkeys(ancestor for scope in scopes for ancestor in list_named_prefixes(scope))
    )
    found = await connection.fetch_rows("scope_names", list(reads), scope_path)
    return {row["scope"]: row["name"] for row in found}


VISIBLE_STATUSES = (MemoryStatus.ACTIVE.value, MemoryStatus.SUPERSEDED.value)
NEIGHBOUR_LIMIT = 50
"""Maximum number of neighbours returned with a memory."""
_LINK_PROBLEMS = {
    "cycle": "an edge would close a causal cycle",
    "ring": "an edge would close a ring of tasks that wait for each other",
    "self": "an edge would lead from the memory to itself",
}


@dataclass(frozen=True)
class ListFilter:
    """The filter of a list of memories; None means all."""

    scope: str | None = None
    kinds: Sequence[str] | None = None
    status: Sequence[str] = VISIBLE_STATUSES
    tag: str | None = None
    session: UUID | None = None
    valid_at: datetime | None = None
    key: str | None = None


@dataclass(frozen=True)
class MemoryNeighbour:
    """A memory one edge away; `direction` is seen from the memory asked for."""

    id: UUID
    kind: str
    label: str
    type: str
    direction: str
    weight: float


class MemoryStore:
    """The memories of all tenants, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._names = ScopeNameStore(database)

    async def remember(
        self,
        principal: Principal,
        items: Sequence[NewMemory],
        headers: Mapping[str, str],
        idempotency_key: str | None = None,
        part: str = "all",
        secrets_epoch: int | None = None,
    ) -> list[WriteResult | ReverieError]:
        """Writes each item or returns its error; valid items are written in one transaction.

        Raises `OutdatedSecrets` if the vault's secrets changed after `secrets_epoch`. If an item's
        edges would close a cycle, or its scope has another name, the rest are written one by one.
        Returns results in the order of the items. `headers` carry the trace to the consumers.
        `idempotency_key`: the claimed key; its `part` is written once, even if the response
        was lost.
        """
        payload = await self._resolve_merged_edges(
            principal,
            [row_mapping.encode_memory(new, principal.reads, principal.actor) for new in items],
        )
        try:
            names = {scope: name for new in items for scope, name in new.scope_names.items()}
            if names and secrets_epoch is not None:
                # Names are stored before the write that compares the epoch: one may be a secret.
                epoch = await self._db.call("vault_epoch_of", principal.tenant)
                if epoch != secrets_epoch:
                    raise OutdatedSecrets
            await self._names.save(principal, names)
            found = await self._call_remember(
                principal, payload, headers, (secrets_epoch, idempotency_key, part)
            )
        except InvalidInput as error:
            if len(items) == 1:
                return [error]
            return [
                (
                    await self.remember(
                        principal, [new], headers, idempotency_key, str(index), secrets_epoch
                    )
                )[0]
                for index, new in enumerate(items)
            ]
        return [
            await self._build_outcome(principal, new, result)
            for new, result in zip(items, found, strict=True)
        ]

    async def _resolve_merged_edges(
        self, principal: Principal, items: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Redirects every edge to a merged memory to its merge target; returns the items."""
        edges = [edge for item in items for edge in item.get("edges", ())]
        if edges:
            async with self._db.tenant_transaction(principal.tenant) as connection:
                found = await connection.fetch_rows(
                    "merge_targets", [UUID(edge["to"]) for edge in edges]
                )
            ends = {str(row["id"]): str(row["into"]) for row in found}
            for edge in edges:
                edge["to"] = ends.get(edge["to"], edge["to"])
        return items

    async def _call_remember(
        self,
        principal: Principal,
        payload: list[dict[str, Any]],
        headers: Mapping[str, str],
        request: tuple[int | None, str | None, str],
    ) -> list[dict[str, Any]]:
        try:
            found = await retry_on_conflict(
                lambda: self._db.fetch_rows(
                    *("remember", principal.tenant, principal.tenant_name, payload, dict(headers)),
                    *request,
                ),
                "the key",
            )
        except asyncpg.PostgresError as error:
            if error.sqlstate == "RV002":
                raise OutdatedSecrets from error
            if error.sqlstate != "RV001":
                raise
            raise InvalidInput(
                "edges", _LINK_PROBLEMS[json.loads(str(error))["problem"]]
            ) from error
        return [row[0] for row in found]

    async def _build_outcome(
        self, principal: Principal, new: NewMemory, result: dict[str, Any]
    ) -> WriteResult | ReverieError:
        match result.get("problem"):
            case None:
                return row_mapping.parse_written(result)
            case "conflict":
                return Conflict(
                    f"key {new.key!r} is active in {new.scope}: give a supersede reason "
                    "to replace it",
                    await self._load_current(principal, UUID(result["id"])),
                )
            case "full":
                return TenantFull(result["limit"])
            case "missing_edge":
                return InvalidInput("edges", f"there is no memory {result['to']} to link to")
            case _:
                return build_busy_error("the memory")

    async def _load_current(self, principal: Principal, memory: UUID) -> dict[str, Any] | None:
        """Loads the current memory of a key; None if the caller may write but not read there."""
        try:
            found = await self.get(principal, memory)
        except NotFound:
            return None
        return {"id": str(found.id), "content": found.content, "version": found.version}

    async def get(self, principal: Principal, memory: UUID) -> Memory:
        """Returns one memory. Raises `NotFound` also if the key may not read it."""
        async with self._db.snapshot(principal.tenant) as connection:
            return await _load_memory(connection, principal, memory)

    async def get_with_neighbours(
        self, principal: Principal, memory_id: UUID, limit: int = NEIGHBOUR_LIMIT
    ) -> tuple[Memory, list[MemoryNeighbour]]:
        """Returns a memory, or its merge target, with its direct neighbours, from one snapshot.

        Includes the strongest `limit` edges to memories that the key may read. Raises as `get`
        does.
        """
        async with self._db.snapshot(principal.tenant) as connection:
            memory = await _load_memory(connection, principal, memory_id)
            if memory.status is MemoryStatus.SUPERSEDED:
                end = await connection.fetch_value(
                    "merge_target", memory_id, list(principal.reads), None
                )
                memory = await _load_memory(connection, principal, end) if end else memory
            return memory, await _load_neighbours(connection, principal, memory.id, limit)

    async def load_neighbours(
        self, principal: Principal, memory: UUID, at: datetime
    ) -> list[MemoryNeighbour]:
        """Returns the direct neighbours of a memory at a moment, the strongest edges first."""
        async with self._db.snapshot(principal.tenant) as connection:
            return await _load_neighbours(connection, principal, memory, NEIGHBOUR_LIMIT, at)

    async def resolve(
        self,
        principal: Principal,
        text: str,
        at: datetime | None = None,
        includes_forgotten: bool = False,
    ) -> UUID:
        """The id that a full or short form means: of a merged one, of what it went into.

        `at`: what it meant at a moment. Raises `NotFound` or `InvalidInput`.
        """
        memory_id = await self.find_id(principal, text, at, includes_forgotten)
        async with self._db.snapshot(principal.tenant) as connection:
            end = await connection.fetch_value("merge_target", memory_id, list(principal.reads), at)
        return UUID(str(end)) if end else memory_id

    async def find_id(
        self,
        principal: Principal,
        text: str,
        at: datetime | None = None,
        includes_forgotten: bool = False,
    ) -> UUID:
        """The id that a full or short form names, merged or not. Raises as `resolve` does."""
        if (part := parse_id_fragment(text)) is None:
            return parse_id(text)
        id_range = (part.digits, part.low, part.high)
        async with self._db.snapshot(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "memory_by_short_id", *id_range, list(principal.reads), at, includes_forgotten
            )
        return require_single_match("memory", text, found)

    async def page(
        self, principal: Principal, below: UUID | None, limit: int, filters: ListFilter
    ) -> list[Memory]:
        """Lists memories newest first, below the id `below`; anchors only if their kind is
        requested."""
        async with self._db.snapshot(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "memory_list",
                list(principal.reads),
                below,
                filters.scope,
                filters.kinds,
                list(filters.status),
                filters.tag,
                filters.session,
                limit,
                filters.valid_at,
                filters.key,
            )
        return [row_mapping.parse_memory(row) for row in found]


def build_events(
    principal: Principal, written: WriteResult, headers: Mapping[str, str]
) -> list[OutgoingEvent]:
    """Builds the outbox rows of a write, to be published after the reply; none on a duplicate."""
    old = written.superseded
    changes = [("superseded", old.id, old.version, old.event)] if old else []
    if written.event is not None:
        changes.append(("remembered", written.id, written.version, written.event))
    return [
        build_outgoing_event(
            principal.tenant,
            memory_subject(principal.tenant_name, name, headers),
            {"id": str(memory), "version": version},
            headers,
            event,
        )
        for name, memory, version, event in changes
    ]


def parse_id(text: str) -> UUID:
    """A full id. Raises `InvalidInput`."""
    full = parse_full_id(text)
    if full is None:
        raise InvalidInput("id", f"{text[:40]!r} is not an id")
    return full


async def _load_memory(connection: TenantConnection, principal: Principal, memory: UUID) -> Memory:
    row = await connection.fetch_row("memory_get", memory, list(principal.reads))
    if row is None:
        raise NotFound("memory", str(memory))
    return row_mapping.parse_memory(row)


async def _load_neighbours(
    connection: TenantConnection,
    principal: Principal,
    memory: UUID,
    limit: int,
    at: datetime | None = None,
) -> list[MemoryNeighbour]:
    reads = list(principal.reads)
    found = await connection.fetch_rows("memory_neighbours", memory, reads, limit, at)
    return [MemoryNeighbour(**row) for row in found]


class FactStore:
    """The facts of all tenants, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._names = ScopeNameStore(database)

    async def learn(
        self, principal: Principal, new: NewMemory, headers: Mapping[str, str]
    ) -> WriteResult:
        """Writes the fact. Raises `Conflict` if it was verified later."""
        await self._names.save(principal, new.scope_names)
        item = row_mapping.encode_memory(new, principal.reads, principal.actor)
        found: dict[str, Any] = await retry_on_conflict(
            lambda: call_once(
                self._db,
                "fact_put",
                principal.tenant,
                "fact_put",
                principal.tenant_name,
                item,
                dict(headers),
            ),
            "the fact",
        )
        if found.get("problem") == "later":
            raise Conflict(
                f"this fact was verified on {found['verified']} already",
                {"id": found["id"], "verified": found["verified"]},
            )
        if "problem" in found:
            is_full = found["problem"] == "full"
            raise TenantFull(found["limit"]) if is_full else build_busy_error("the fact")
        return row_mapping.parse_written(found)

    async def page(
        self,
        principal: Principal,
        below: UUID | None,
        limit: int,
        scope: str | None,
        topic: str | None,
    ) -> list[Memory]:
        """Claims newest first, below the id `below`; `topic` is a slug."""
        key_pattern = None if topic is None else f"learn:{_escape_like(topic)}:%"
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "fact_list", list(principal.reads), below, scope, key_pattern, limit
            )
        return [row_mapping.parse_memory(row) for row in found]


def _escape_like(text: str) -> str:
    """Escapes a text so that it matches literally in a pattern."""
    return text.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%")
