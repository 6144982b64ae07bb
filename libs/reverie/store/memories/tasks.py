"""Reads and changes the state, claims and dependencies of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from reverie.contracts.events import OutgoingEvent, build_outgoing_event, memory_subject
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Conflict, Forbidden, InvalidInput, NotFound, ReverieError
from reverie.domain.core.memory import Memory
from reverie.store.db import row_mapping
from reverie.store.db.database import Database
from reverie.store.db.idempotency import call_once


@dataclass(frozen=True)
class TaskStatus:
    """A task's state as shown; `depends_on` names what the key may read."""

    state: str
    claimed_by: str | None
    claimed_until: datetime | None
    depends_on: Sequence[UUID]
    claimable: bool


@dataclass(frozen=True)
class TaskChange:
    """A change of a task: a claim for `claim_seconds`, a `state`, or with neither a release."""

    agent: str
    state: str | None = None
    claim_seconds: float | None = None


@dataclass(frozen=True)
class TaskChangeResult:
    """The version of the memory, and the events to publish; empty if nothing changed."""

    version: int
    events: list[OutgoingEvent] = field(default_factory=list)


class TaskStore:
    """The tasks of all tenants, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def apply_change(
        self, principal: Principal, memory: UUID, change: TaskChange, headers: Mapping[str, str]
    ) -> TaskChangeResult:
        """Changes the state or the claim of a task, or changes nothing.

        Raises `Conflict` naming the holder or what must be done before, `NotFound`, `Forbidden`,
        `InvalidInput`.
        """
        found: dict[str, Any] = await call_once(
            self._db,
            "task_move",
            principal.tenant,
            f"move {memory}",
            principal.tenant_name,
            memory,
            list(principal.reads),
            list(principal.writable_patterns),
            change.agent,
            change.state,
            change.claim_seconds,
            principal.actor,
            dict(headers),
        )
        if "problem" in found:
            raise _build_error(memory, found)
        return TaskChangeResult(found["version"], _build_events(principal, memory, found, headers))

    async def get_status(
        self, principal: Principal, memory: UUID, at: datetime | None = None
    ) -> TaskStatus | None:
        """Returns the status of a task, now or `at` a moment; None if the memory is not a task."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            row = await connection.fetch_row("task_get", memory, list(principal.reads), at)
        return _parse_status(row) if row else None

    async def page(
        self,
        principal: Principal,
        below: UUID | None,
        limit: int,
        scope: str | None = None,
        states: Sequence[str] | None = None,
        claimable: bool | None = None,
    ) -> list[tuple[Memory, TaskStatus]]:
        """Tasks newest first, below the id `below`; None does not narrow."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "task_list", list(principal.reads), below, scope, states, claimable, limit
            )
        return [(row_mapping.parse_memory(row), _parse_status(row)) for row in found]


def _parse_status(row: asyncpg.Record) -> TaskStatus:
    return TaskStatus(
        state=row["state"],
        claimed_by=row["claimed_by"],
        claimed_until=row["claimed_until"],
        depends_on=tuple(row["depends_on"]),
        claimable=row["claimable"],
    )


def _build_events(
    principal: Principal, memory: UUID, found: Mapping[str, Any], headers: Mapping[str, str]
) -> list[OutgoingEvent]:
    if "event" not in found:
        return []
    body = {"id": str(memory), "version": found["version"]}
    subject = memory_subject(principal.tenant_name, "task")
    return [build_outgoing_event(principal.tenant, subject, body, headers, UUID(found["event"]))]


def _build_error(memory: UUID, found: Mapping[str, Any]) -> ReverieError:
    match found["problem"]:
        case "not_found":
            return NotFound("task", str(memory))
        case "forbidden":
            return Forbidden("write", found["scope"])
        case "no_task":
            return InvalidInput("id", f"this memory is of kind {found['kind']}, not a task")
        case "held":
            holder = {"claimed_by": found["by"], "claimed_until": found["until"]}
            return Conflict(f"{found['by']} has this task until {found['until']}", holder)
        case "waits":
            blockers = ", ".join(found["for"]) or "a task that this key may not read"
            return Conflict(
                f"to be done before this task: {blockers}", {"depends_on": list(found["for"])}
            )
        case "closed":
            return Conflict(f"this task is {found['status']}: it cannot be worked on")
        case state:
            return Conflict(f"this task is {state}: set it to todo first", {"state": state})
