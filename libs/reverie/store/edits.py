"""Changes of memories that stand: edited, forgotten, rolled back, pinned, judged."""

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
from reverie.domain.errors import Conflict, Forbidden, Invalid, Moved, NotFound, ReverieError
from reverie.domain.memory import content_hash
from reverie.domain.said import memory_words
from reverie.store.database import Database, Tenant
from reverie.store.effects import called_once
from reverie.store.links import refused_ring
from reverie.store.races import retried

NEWEST = 2**31 - 1


@dataclass(frozen=True)
class Change:
    """What is to become of a memory: columns by name, `tags`, and `index_text` for new words.

    `event` names it on the bus, as `edited`; `expected` is the version it was read at, if said.
    """

    fields: Mapping[str, Any]
    why: str
    event: str
    expected: int | None = None


@dataclass(frozen=True)
class Changed:
    """The version that stands now, and the events to publish; none where nothing changed."""

    version: int
    events: list[Outgoing]


@dataclass(frozen=True)
class Version:
    """What a memory was from `known_from` to `known_to` (null: it still is)."""

    version: int
    content: str
    status: str
    kind: str | None
    key: str | None
    tags: list[str]
    known_from: datetime
    known_to: datetime | None
    who: str | None
    why: str | None


class Edits:
    """Versioned changes, each atomic; refused ones change nothing."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def change(
        self, who: Principal, memory: UUID, change: Change, headers: Mapping[str, str]
    ) -> Changed:
        """Carries out a change. Raises `NotFound`, `Forbidden`, `Moved`, `Conflict`, `Invalid`."""
        try:
            found: dict[str, Any] = await retried(
                lambda: called_once(
                    self._db,
                    "memory_change",
                    who.tenant,
                    f"change {memory}",
                    *_asked(who, memory, change, headers),
                ),
                "the memory",
            )
        except asyncpg.CheckViolationError as error:
            if error.constraint_name != "task_in_order":
                raise
            raise await self._waits_for_itself(who, json.loads(str(error))) from error
        return _changed(who, memory, found, headers)

    async def _waits_for_itself(self, who: Principal, path: Sequence[str]) -> Conflict:
        async with self._db.tenant(who.tenant) as tenant:
            said = "as a task it would wait for itself"
            return await refused_ring(tenant, who, said, [UUID(node) for node in path])

    async def history(self, who: Principal, memory: UUID, below: int, limit: int) -> list[Version]:
        """Versions newest first, below the version `below`."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("history", memory, list(who.reads), below, limit)
        return [Version(**row) for row in found]

    async def version(
        self, who: Principal, memory: UUID, version: int
    ) -> tuple[str, dict[str, Any]]:
        """The content and the other columns of an earlier version. Raises `NotFound`."""
        async with self._db.tenant(who.tenant) as tenant:
            row = await tenant.row("version_read", memory, list(who.reads), version)
        if row is None:
            raise NotFound("version", f"{version} of memory {memory}")
        return row["content"], row["state"]


async def change_within(
    tenant: Tenant, who: Principal, memory: UUID, change: Change, headers: Mapping[str, str]
) -> Changed:
    """Carries out a change as part of a transaction, which ends where this raises as above."""
    found = await tenant.value("memory_change", *_asked(who, memory, change, headers))
    return _changed(who, memory, found, headers)


def _asked(
    who: Principal, memory: UUID, change: Change, headers: Mapping[str, str]
) -> tuple[object, ...]:
    return (
        who.tenant_name,
        memory,
        list(who.reads),
        list(who.writable),
        change.expected,
        dict(change.fields),
        who.actor,
        change.why,
        change.event,
        dict(headers),
    )


def _changed(
    who: Principal, memory: UUID, found: Mapping[str, Any], headers: Mapping[str, str]
) -> Changed:
    if "problem" in found:
        raise _problem(memory, found)
    body = {"id": str(memory), "version": found["version"]}
    events = [
        outgoing(who.tenant, memory_subject(who.tenant_name, name), body, headers, UUID(str(event)))
        for name, event in dict(found["events"] or {}).items()
    ]
    return Changed(found["version"], events)


def worded(content: str, key: str | None, tags: Sequence[str]) -> dict[str, str]:
    """The content with what is derived from it in the row, as fields of a `Change`."""
    return {
        "content": content,
        "hash": "\\x" + content_hash(content),
        "index_text": memory_words(key, content, tags),
    }


def _problem(memory: UUID, found: Mapping[str, Any]) -> ReverieError:
    match found["problem"]:
        case "forbidden":
            return Forbidden("write", found["scope"])
        case "made":
            return Invalid("id", "file and entity nodes are made from what memories touch")
        case "moved":
            return Moved(found["version"])
        case "twin":
            return Conflict(
                f"the active memory {found['id']} has this content or key already",
                {"id": str(found["id"])},
            )
        case _:
            return NotFound("memory", str(memory))
