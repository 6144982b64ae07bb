"""Tasks: where they stand, what they wait for, who has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from reverie.contracts.events import Outgoing, memory_subject, outgoing
from reverie.domain.access import Principal
from reverie.domain.errors import Conflict, Forbidden, Invalid, NotFound, ReverieError
from reverie.domain.memory import Memory
from reverie.store import rows
from reverie.store.database import Database
from reverie.store.effects import called_once


@dataclass(frozen=True)
class Standing:
    """A task's state as shown; `waits_for` names what the key may read."""

    state: str
    claimed_by: str | None
    claimed_until: datetime | None
    waits_for: Sequence[UUID]
    claimable: bool


@dataclass(frozen=True)
class Move:
    """What is to become of a task: a claim of `seconds`, a `state`, or with neither a release."""

    agent: str
    state: str | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Moved:
    """The version of the memory, and the events to publish; none where nothing changed."""

    version: int
    events: list[Outgoing] = field(default_factory=list)


class Tasks:
    """The tasks of all tenants, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def move(
        self, who: Principal, memory: UUID, move: Move, headers: Mapping[str, str]
    ) -> Moved:
        """Carries out a move, or changes nothing.

        Raises `Conflict` naming the holder or what must be done before, `NotFound`, `Forbidden`,
        `Invalid`.
        """
        found: dict[str, Any] = await called_once(
            self._db,
            "task_move",
            who.tenant,
            f"move {memory}",
            who.tenant_name,
            memory,
            list(who.reads),
            list(who.writable),
            move.agent,
            move.state,
            move.seconds,
            who.actor,
            dict(headers),
        )
        if "problem" in found:
            raise _problem(memory, found)
        return Moved(found["version"], _events(who, memory, found, headers))

    async def standing(
        self, who: Principal, memory: UUID, at: datetime | None = None
    ) -> Standing | None:
        """Where a task stands, or stood `at` a moment; None where the memory is none."""
        async with self._db.tenant(who.tenant) as tenant:
            if at is None:
                row = await tenant.row("task_of", memory, list(who.reads))
            else:
                row = await tenant.row("task_of_then", memory, list(who.reads), at)
        return _standing(row) if row else None

    async def page(
        self,
        who: Principal,
        below: UUID | None,
        limit: int,
        scope: str | None = None,
        states: Sequence[str] | None = None,
        claimable: bool | None = None,
    ) -> list[tuple[Memory, Standing]]:
        """Tasks newest first, below the id `below`; None does not narrow."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows(
                "task_list", list(who.reads), below, scope, states, claimable, limit
            )
        return [(rows.memory(row), _standing(row)) for row in found]


def _standing(row: asyncpg.Record) -> Standing:
    return Standing(
        state=row["state"],
        claimed_by=row["claimed_by"],
        claimed_until=row["claimed_until"],
        waits_for=tuple(row["waits_for"]),
        claimable=row["claimable"],
    )


def _events(
    who: Principal, memory: UUID, found: Mapping[str, Any], headers: Mapping[str, str]
) -> list[Outgoing]:
    if "event" not in found:
        return []
    body = {"id": str(memory), "version": found["version"]}
    subject = memory_subject(who.tenant_name, "task")
    return [outgoing(who.tenant, subject, body, headers, UUID(found["event"]))]


def _problem(memory: UUID, found: Mapping[str, Any]) -> ReverieError:
    match found["problem"]:
        case "not_found":
            return NotFound("task", str(memory))
        case "forbidden":
            return Forbidden("write", found["scope"])
        case "no_task":
            return Invalid("id", f"this memory is of kind {found['kind']}, not a task")
        case "held":
            holder = {"claimed_by": found["by"], "claimed_until": found["until"]}
            return Conflict(f"{found['by']} has this task until {found['until']}", holder)
        case "waits":
            named = ", ".join(found["for"]) or "a task that this key may not read"
            return Conflict(
                f"to be done before this task: {named}", {"waits_for": list(found["for"])}
            )
        case "closed":
            return Conflict(f"this task is {found['status']}: it cannot be worked on")
        case state:
            return Conflict(f"this task is {state}: set it to todo first", {"state": state})
