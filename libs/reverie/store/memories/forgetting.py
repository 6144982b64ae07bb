"""Forgets many memories, restores archived and forgotten ones, and erases their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from reverie.contracts.events import OutgoingEvent, build_outgoing_event, memory_subject
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Conflict, Forbidden, NotFound
from reverie.domain.core.ids import new_id
from reverie.domain.core.memory import MemoryStatus
from reverie.store.db.database import Database, TenantConnection
from reverie.store.db.idempotency import call_once, retry_on_conflict
from reverie.store.memories.edits import build_change_events, build_write_error
from reverie.store.sessions.summaries import remove_outdated_lines

MAX_QUOTING = 50


@dataclass(frozen=True)
class ForgettableMemory:
    """A memory, forgotten or not; an erased one has no content."""

    id: UUID
    scope: str
    status: MemoryStatus
    version: int
    content: str


@dataclass(frozen=True)
class RestoredMemory:
    """The version and the status of a memory that was restored, and the event to publish."""

    version: int
    status: str
    event: OutgoingEvent


@dataclass(frozen=True)
class ForgetFilter:
    """Which memories: those of ids or of a scope, with a key, a tag, a status; None for all."""

    ids: Sequence[UUID] | None = None
    scope: str | None = None
    keys: Sequence[str] | None = None
    tag: str | None = None
    status: Sequence[str] | None = None


@dataclass(frozen=True)
class ForgottenMemories:
    """The memories that were forgotten, the events to publish, and whether others pass."""

    ids: list[UUID]
    events: list[OutgoingEvent]
    more: bool


class ForgettingStore:
    """Forgets many memories at once, undoes archiving and forgetting, and makes it final."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def get(self, principal: Principal, memory: UUID) -> ForgettableMemory:
        """A memory of any status. Raises `NotFound` also if the key may not read it."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            row = await connection.fetch_row("forgettable_memory", memory, list(principal.reads))
        if row is None:
            raise NotFound("memory", str(memory))
        return ForgettableMemory(**{**row, "status": MemoryStatus(row["status"])})

    async def forget(
        self, principal: Principal, chosen: ForgetFilter, limit: int, headers: Mapping[str, str]
    ) -> ForgottenMemories:
        """Forgets at most `limit` memories. Raises `Forbidden` if the key may not write one."""
        lists = (chosen.ids, chosen.keys, chosen.status)
        ids, keys, status = (None if values is None else list(values) for values in lists)
        found = await retry_on_conflict(
            lambda: call_once(
                self._db,
                "forget_memories",
                principal.tenant,
                "forget",
                principal.tenant_name,
                list(principal.reads),
                list(principal.writable_patterns),
                ids,
                chosen.scope,
                keys,
                chosen.tag,
                status,
                limit,
                principal.actor,
                dict(headers),
            ),
            "a memory",
        )
        if "problem" in found:
            raise Forbidden("write", found["scope"])
        events = [
            event
            for memory in found["forgotten"]
            for event in build_change_events(principal, memory["id"], memory, headers)
        ]
        forgotten = [UUID(memory["id"]) for memory in found["forgotten"]]
        return ForgottenMemories(forgotten, events, found["more"])

    async def restore(
        self, principal: Principal, memory: UUID, kept_seconds: float
    ) -> RestoredMemory:
        """Restores a memory from the archive, or one that was forgotten at most `kept_seconds` ago.

        Raises `NotFound`, `Forbidden`, or `Conflict` if it is neither or another active memory has
        its key or content.
        """
        found = await call_once(
            self._db,
            "restore_memory",
            principal.tenant,
            f"restore {memory}",
            principal.tenant_name,
            memory,
            list(principal.reads),
            list(principal.writable_patterns),
            principal.actor,
            new_id(),
            {},
            timedelta(seconds=kept_seconds),
        )
        _raise_problem(memory, found)
        body = {"id": str(memory), "version": found["version"]}
        subject = memory_subject(principal.tenant_name, "restored")
        event = build_outgoing_event(principal.tenant, subject, body, {}, UUID(found["event"]))
        return RestoredMemory(found["version"], found["status"], event)

    async def list_due(self, kept_seconds: float, limit: int) -> list[tuple[int, UUID]]:
        """Lists (tenant, memory) that were forgotten so long ago, of all tenants."""
        found = await self._db.fetch_rows("forgotten_due", timedelta(seconds=kept_seconds), limit)
        return [(row["tenant"], row["id"]) for row in found]

    async def erase(
        self, tenant: int, memory: UUID, scopes: Sequence[str] | None = None
    ) -> dict[str, int]:
        """Erases a forgotten memory; returns the number of rows by table.

        What quotes it is erased where the grants `scopes` cover it, and in the turns that it was
        made of. None covers its own scope. Erasing it again erases nothing.
        """
        async with self._db.tenant_transaction(tenant) as connection:
            cleaned = await _clean_summaries(connection, memory)
            found = await connection.fetch_rows(
                "erase_memory", memory, None if scopes is None else list(scopes)
            )
        rows = {row["name"]: row["gone"] for row in found}
        return {**rows, "summary": rows.get("summary", 0) + cleaned} if cleaned else rows

    async def list_quoting(self, principal: Principal, text: str) -> list[UUID]:
        """Lists other readable memories that still contain a statement of the text."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "memories_quoting", list(principal.reads), text, MAX_QUOTING
            )
        return [row["id"] for row in found]


async def _clean_summaries(connection: TenantConnection, memory: UUID) -> int:
    """Removes lines about a forgotten memory from the stored summaries; how many changed."""
    scopes = [row["scope"] for row in await connection.fetch_rows("forgotten_scopes", memory)]
    summaries: Sequence[Any] = [
        row
        for scope in scopes
        for row in await connection.fetch_rows("summary_list", [scope], scope, None, 1)
    ]
    outdated = await connection.fetch_rows("summary_outdated_lines", scopes)
    contents = remove_outdated_lines(summaries, outdated)
    changed = [row for row in summaries if contents[row["scope"]] != row["content"]]
    for row in changed:
        await connection.fetch_rows("summary_content_put", row["scope"], contents[row["scope"]])
    return len(changed)


def _raise_problem(memory: UUID, found: dict[str, Any]) -> None:
    match found.get("problem"):
        case None:
            return
        case "status":
            raise Conflict(f"the memory is {found['status']}, neither archived nor forgotten")
        case "twin":
            raise Conflict(
                f"the active memory {found['id']} holds its key or content", {"id": found["id"]}
            )
        case _:
            raise build_write_error(memory, found)
