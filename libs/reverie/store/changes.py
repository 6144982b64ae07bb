"""Git changes, the anchors they move and the marks they leave."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.contracts.events import Outgoing, git_subject, outgoing
from reverie.contracts.git import GitChange
from reverie.domain.access import Principal
from reverie.domain.ids import new_id
from reverie.domain.memory import Memory
from reverie.domain.scopes import slug
from reverie.store import rows
from reverie.store.database import Database


@dataclass(frozen=True)
class Stored:
    """A change as it stands; `processed` once its marks are made. `told`: changes with the body."""

    id: UUID
    project: str
    branch: str
    body: GitChange
    processed: datetime | None
    told: str


@dataclass(frozen=True)
class Stale:
    """A memory with open marks, and the evidence, newest first."""

    memory: Memory
    evidence: list[dict[str, Any]]


class Changes:
    """The store of the staleness service."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def tenant_name(self, tenant: int) -> str | None:
        """The name of a tenant; None where there is none of that number."""
        return await self._db.name_of(tenant)

    async def add(
        self, who: Principal, change: GitChange, headers: Mapping[str, str]
    ) -> tuple[UUID, bool, Outgoing]:
        """Stores a change once. Answers its id, whether it was known, and the event to publish."""
        project = slug(change.project)
        subject = git_subject(who.tenant_name, project)
        event = new_id()
        found = await self._db.call(
            "change_add",
            who.tenant,
            new_id(),
            project,
            change.branch,
            change.told_as,
            change.model_dump(mode="json", exclude_defaults=True),
            event,
            subject,
            dict(headers),
        )
        body = {"id": found["id"], "project": project}
        told = outgoing(who.tenant, subject, body, headers, event)
        return UUID(found["id"]), found["duplicate"], told

    async def get(self, tenant: int, change: UUID) -> Stored | None:
        """A stored change."""
        async with self._db.tenant(tenant) as t:
            row = await t.row("change_get", change)
        if row is None:
            return None
        body = GitChange.model_validate_json(json.dumps(row["body"]))
        return Stored(row["id"], row["project"], row["branch"], body, row["processed"], row["told"])

    async def unprocessed(
        self, age_seconds: float, limit: int = 100
    ) -> list[tuple[int, str, UUID]]:
        """(tenant, tenant name, change) of changes whose event may be lost."""
        found = await self._db.rows("changes_unprocessed", age_seconds, limit)
        return [(row["tenant"], row["tenant_name"], row["id"]) for row in found]

    async def stale(
        self, who: Principal, scopes: Sequence[str], below: UUID | None, limit: int
    ) -> list[Stale]:
        """Memories of readable scopes with open marks, newest first below the id `below`."""
        async with self._db.tenant(who.tenant) as t:
            found = await t.rows("stale_list", list(scopes), below, limit, list(who.reads))
        return [Stale(rows.memory(row), row["evidence"]) for row in found]
