"""Stores git changes and lists memories with open stale marks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from reverie.contracts.events import OutgoingEvent, build_outgoing_event, git_subject
from reverie.contracts.memories.git import GitChange
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import slugify
from reverie.domain.core.ids import new_id
from reverie.domain.core.memory import Memory
from reverie.store.db import row_mapping
from reverie.store.db.database import Database

CHANGES_PER_LOOK = 100


@dataclass(frozen=True)
class StoredGitChange:
    """A stored change.

    `processed` once its marks are made. `body_hash`: changes with the body.
    """

    id: UUID
    project: str
    branch: str
    body: GitChange
    processed: datetime | None
    body_hash: str


@dataclass(frozen=True)
class StoredCommitMemory:
    """A memory of a commit.

    `is_as_made`: it is active, and nobody has edited it.
    """

    git: dict[str, Any]
    content_hash: bytes
    is_as_made: bool

    @property
    def commit(self) -> object:
        """The commit that wrote it: another than its key names, if that one was reverted."""
        return self.git.get("commit")


@dataclass(frozen=True)
class ChangeBacklog:
    """How many changes wait to be applied, 1,000 at most, and since when the oldest does."""

    waiting: int
    since: datetime | None


@dataclass(frozen=True)
class StaleMemory:
    """A memory with open marks, and the evidence, newest first."""

    memory: Memory
    evidence: list[dict[str, Any]]


class GitChangeStore:
    """The store of the staleness service."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def get_tenant_name(self, tenant: int) -> str | None:
        """The name of a tenant; None if there is no tenant with that number."""
        return await self._db.get_tenant_name(tenant)

    async def add(
        self, principal: Principal, change: GitChange, headers: Mapping[str, str]
    ) -> tuple[UUID, bool, OutgoingEvent]:
        """Stores a change once. Returns its id, whether it was known, and the event to publish."""
        project = slugify(change.project)
        subject = git_subject(principal.tenant_name, project)
        event_id = new_id()
        found = await self._db.call(
            "git_event_add",
            principal.tenant,
            new_id(),
            project,
            change.branch,
            change.deduplication_key,
            change.model_dump(mode="json", exclude_defaults=True),
            event_id,
            subject,
            dict(headers),
        )
        body = {"id": found["id"], "project": project}
        message = build_outgoing_event(principal.tenant, subject, body, headers, event_id)
        return UUID(found["id"]), found["duplicate"], message

    async def get(self, tenant: int, change: UUID) -> StoredGitChange | None:
        """A stored change."""
        async with self._db.tenant_transaction(tenant) as connection:
            row = await connection.fetch_row("change_get", change)
        if row is None:
            return None
        body = GitChange.model_validate_json(json.dumps(row["body"]))
        return StoredGitChange(
            row["id"], row["project"], row["branch"], body, row["processed"], row["fingerprint"]
        )

    async def load_commit_memories(
        self, tenant: int, scope: str, keys: Sequence[str]
    ) -> dict[str, list[StoredCommitMemory]]:
        """All memories that were ever written under keys, oldest first."""
        async with self._db.tenant_transaction(tenant) as connection:
            rows = await connection.fetch_rows("commit_memories", scope, list(keys))
        found: dict[str, list[StoredCommitMemory]] = {}
        for row in rows:
            stored = StoredCommitMemory(row["git"] or {}, bytes(row["hash"]), row["as_made"])
            found.setdefault(row["key"], []).append(stored)
        return found

    async def list_unprocessed(self, age_seconds: float) -> list[tuple[int, str, UUID]]:
        """Lists (tenant, tenant name, change) of changes whose event may be lost."""
        found = await self._db.fetch_rows(
            "changes_unprocessed", timedelta(seconds=age_seconds), CHANGES_PER_LOOK
        )
        return [(row["tenant"], row["tenant_name"], row["id"]) for row in found]

    async def note_failure(self, tenant: int, change: UUID, error: Exception) -> None:
        """Counts a failed attempt to apply a change."""
        await self._db.call("note_work_failure", tenant, change, 1, type(error).__name__)

    async def find_backlog(self, principal: Principal, scopes: Sequence[str]) -> ChangeBacklog:
        """What is announced and not applied yet, of the projects that the scopes cover."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            row = await connection.fetch_row("changes_waiting", list(scopes))
        assert row is not None, "an aggregate has one row"
        return ChangeBacklog(**row)

    async def list_stale(
        self, principal: Principal, scopes: Sequence[str], below: UUID | None, limit: int
    ) -> list[StaleMemory]:
        """Memories of readable scopes with open marks, newest first below the id `below`."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "stale_list", list(scopes), below, limit, list(principal.reads)
            )
        return [StaleMemory(row_mapping.parse_memory(row), row["evidence"]) for row in found]
