"""Applies versioned changes and corrections to memories and reads their versions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import asyncpg

from reverie.contracts.events import OutgoingEvent, build_outgoing_event, memory_subject
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    PreconditionFailed,
    ReverieError,
)
from reverie.domain.core.memory import Memory, NewMemory, WriteResult, hash_content
from reverie.domain.text.index_terms import memory_index_text
from reverie.store.db import row_mapping
from reverie.store.db.database import Database, TenantConnection
from reverie.store.db.idempotency import call_once, retry_on_conflict, run_once
from reverie.store.graph.links import build_cycle_error

NEWEST_VERSION = 2**31 - 1


@dataclass(frozen=True)
class MemoryChange:
    """The changes of a memory: columns by name, `tags`, and `index_text` for new words.

    `event` is its name on the bus, such as `edited`; `expected_version` is the version read before,
    if given. `confirms`: whoever makes the change says that the memory holds now, which ends the
    doubt about it.
    """

    fields: Mapping[str, Any]
    reason: str
    event: str
    expected_version: int | None = None
    confirms: bool = False


@dataclass(frozen=True)
class ChangeResult:
    """The current version, whether the change made it, and the events to publish."""

    version: int
    changed: bool
    events: list[OutgoingEvent]


@dataclass(frozen=True)
class MemoryVersion:
    """A memory's state from `known_from` to `known_to` (null: it is current)."""

    version: int
    content: str
    status: str
    kind: str | None
    tier: str | None
    key: str | None
    tags: list[str]
    known_from: datetime
    known_to: datetime | None
    actor: str | None
    reason: str | None


class EditStore:
    """Versioned changes, each atomic; refused ones change nothing."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def change(
        self, principal: Principal, memory: UUID, change: MemoryChange, headers: Mapping[str, str]
    ) -> ChangeResult:
        """Carries out a change.

        Raises `NotFound`, `Forbidden`, `PreconditionFailed`, `Conflict`, `InvalidInput`.
        """
        try:
            found: dict[str, Any] = await retry_on_conflict(
                lambda: call_once(
                    self._db,
                    "memory_change",
                    principal.tenant,
                    f"change {memory}",
                    *_change_args(principal, memory, change, headers),
                ),
                "the memory",
            )
        except asyncpg.CheckViolationError as error:
            if error.constraint_name != "check_task_cycle":
                raise
            raise await self._build_cycle_error(principal, json.loads(str(error))) from error
        return _parse_change(principal, memory, found, headers)

    async def _build_cycle_error(self, principal: Principal, path: Sequence[str]) -> Conflict:
        async with self._db.tenant_transaction(principal.tenant) as connection:
            message = "as a task it would wait for itself"
            return await build_cycle_error(
                connection, principal, message, [UUID(node) for node in path]
            )

    async def history(
        self, principal: Principal, memory: UUID, below: int, limit: int
    ) -> list[MemoryVersion]:
        """Versions newest first, below the version `below`."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "memory_versions", memory, list(principal.reads), below, limit
            )
        return [MemoryVersion(**row) for row in found]

    async def version(
        self, principal: Principal, memory: UUID, version: int
    ) -> tuple[str, dict[str, Any]]:
        """The content and the other columns of an earlier version. Raises `NotFound`."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            row = await connection.fetch_row(
                "memory_version_get", memory, list(principal.reads), version
            )
        if row is None:
            raise NotFound("version", f"{version} of memory {memory}")
        return row["content"], row["state"]


async def change_in_transaction(
    connection: TenantConnection,
    principal: Principal,
    memory: UUID,
    change: MemoryChange,
    headers: Mapping[str, str],
) -> ChangeResult:
    """Applies a change within a transaction, which is rolled back if this raises as above."""
    found = await connection.fetch_value(
        "memory_change", *_change_args(principal, memory, change, headers)
    )
    return _parse_change(principal, memory, found, headers)


def _change_args(
    principal: Principal, memory: UUID, change: MemoryChange, headers: Mapping[str, str]
) -> tuple[object, ...]:
    return (
        principal.tenant_name,
        memory,
        list(principal.reads),
        list(principal.writable_patterns),
        change.expected_version,
        dict(change.fields),
        principal.actor,
        change.reason,
        change.event,
        dict(headers),
        change.confirms,
    )


def _parse_change(
    principal: Principal, memory: UUID, found: Mapping[str, Any], headers: Mapping[str, str]
) -> ChangeResult:
    if "problem" in found:
        raise build_write_error(memory, found)
    events = build_change_events(principal, str(memory), found, headers)
    return ChangeResult(found["version"], found["changed"], events)


def build_change_events(
    principal: Principal, memory: str, found: Mapping[str, Any], headers: Mapping[str, str]
) -> list[OutgoingEvent]:
    """The events of a change, as the function `memory_change` returns it."""
    body = {"id": memory, "version": found["version"]}
    return [
        build_outgoing_event(
            principal.tenant,
            memory_subject(principal.tenant_name, name, headers),
            body,
            headers,
            UUID(str(event)),
        )
        for name, event in dict(found["events"] or {}).items()
    ]


def remove_record(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata for a new text: the parts of a decision record describe the old one."""
    return {name: value for name, value in metadata.items() if name != "record"}


def build_content_fields(
    content: str, key: str | None, tags: Sequence[str], metadata: Mapping[str, Any]
) -> dict[str, str]:
    """The content with what is derived from it in the row, as fields of a `MemoryChange`.

    `metadata`: as it is after the change.
    """
    return {
        "content": content,
        "hash": "\\x" + hash_content(content),
        "index_text": memory_index_text(key, content, tags, metadata),
    }


def build_write_error(memory: UUID, found: Mapping[str, Any]) -> ReverieError:
    """The error for the `problem` that a function of the schema found with a memory."""
    match found["problem"]:
        case "forbidden":
            return Forbidden("write", found["scope"])
        case "made":
            return InvalidInput("id", "file and entity nodes are made from what memories touch")
        case "moved":
            return PreconditionFailed(found["version"])
        case "twin":
            return Conflict(
                f"the active memory {found['id']} has this content or key already",
                {"id": str(found["id"])},
            )
        case _:
            return NotFound("memory", str(memory))


class CorrectionStore:
    """Corrections of all tenants."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def claim_turn(
        self, principal: Principal, session: UUID, turn_hash: bytes, cooldown_seconds: float
    ) -> Literal["taken", "seen", "cooldown"]:
        """Claims a turn (by its hash) of a writable session for this caller; returns whether it
        may."""

        async def take() -> Literal["taken", "seen", "cooldown"]:
            if await connection.fetch_value(
                "correction_claim_turn", session, turn_hash, cooldown_seconds
            ):
                return "taken"
            is_same_turn = await connection.fetch_value(
                "correction_is_same_turn", session, turn_hash
            )
            return "seen" if is_same_turn else "cooldown"

        async with self._db.tenant_transaction(principal.tenant) as connection:
            claim_state: Literal["taken", "seen", "cooldown"] = await run_once(
                connection, "take", take
            )
        return claim_state

    async def find_candidates(
        self,
        principal: Principal,
        scopes: Sequence[str],
        kinds: Sequence[str],
        words: str,
        limit: int,
    ) -> list[Memory]:
        """Active memories of these scopes that the key may change and that have some of the words
        (prepared as for a search): those with most of them, the surest first.

        To a request that is sent again those that it found at first: of what it wrote since, it is
        to correct nothing.
        """
        args = (
            principal.narrow_to_readable(scopes),
            list(principal.writable_patterns),
            list(kinds),
            limit,
            words,
        )
        found: list[Memory] = []

        async def look() -> list[str]:
            found.extend(
                map(
                    row_mapping.parse_memory,
                    await connection.fetch_rows("correction_candidates", *args),
                )
            )
            return [str(candidate.id) for candidate in found]

        async with self._db.tenant_transaction(principal.tenant) as connection:
            memory_ids = await run_once(connection, "standing", look)
            for memory_id in memory_ids if not found else ():
                row = await connection.fetch_row(
                    "memory_get", UUID(memory_id), list(principal.reads)
                )
                found += [row_mapping.parse_memory(row)] if row else []
        return found

    async def replace(
        self,
        principal: Principal,
        old: Memory,
        new: NewMemory,
        reason: str,
        headers: Mapping[str, str],
    ) -> WriteResult | None:
        """Writes the new memory, then retires the old one; None if that changed in the meantime."""

        item = row_mapping.encode_memory(new, list(principal.reads), principal.actor)
        found = await retry_on_conflict(
            lambda: call_once(
                self._db,
                "replace_memory",
                principal.tenant,
                f"replace {old.id}",
                *(principal.tenant_name, old.id, old.version, item, reason, dict(headers)),
            ),
            "the memory",
        )
        return None if "problem" in found else row_mapping.parse_written(found)
