"""Git changes, the anchors they move and the marks they leave."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.contracts.events import Outgoing, git_subject, memory_subject, outgoing
from reverie.contracts.git import GitChange
from reverie.domain.access import Principal
from reverie.domain.ids import new_id
from reverie.domain.memory import Memory, content_hash
from reverie.domain.scopes import slug
from reverie.domain.staleness import Mark
from reverie.store import rows
from reverie.store.database import Database


@dataclass(frozen=True)
class Stored:
    """A change as it stands; `processed` once its marks are made; `opened` counts its openings."""

    id: UUID
    project: str
    branch: str
    body: GitChange
    processed: datetime | None
    opened: int


@dataclass(frozen=True)
class Touching:
    """A memory that touches an anchored file; `lines` as the edge's metadata has them."""

    memory: UUID
    path: str
    known_at: datetime
    lines: Any


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
        return Stored(
            row["id"], row["project"], row["branch"], body, row["processed"], row["opened"]
        )

    async def touching(self, tenant: int, project: str, names: Sequence[str]) -> list[Touching]:
        """Memories that touch files whose last path component, in lower case, is in `names`."""
        async with self._db.tenant(tenant) as t:
            anchors = await t.rows("anchors_named", project, list(names))
            paths = {row["node"]: row["path"] for row in anchors}
            found = await t.rows("anchored_memories", list(paths))
        return [Touching(r["id"], paths[r["node"]], r["known_at"], r["lines"]) for r in found]

    async def apply(
        self,
        tenant: tuple[int, str],
        change: Stored,
        marks: Sequence[Mark],
        moves: Sequence[tuple[str, str]],
        headers: Mapping[str, str],
    ) -> list[Outgoing]:
        """Moves anchors, writes marks and closes the change, all at once and repeatable.

        A change that was opened again meanwhile stays open. Answers the events to publish: one of
        each memory that was newly marked.
        """
        number, name = tenant
        subject = memory_subject(name, "staled")
        async with self._db.tenant(number) as t:
            added = await t.rows("marks_add", [_mark(mark) for mark in marks], change.id)
            for old, new in moves:
                hashed = bytes.fromhex(content_hash(new))
                base = new.rsplit("/", 1)[-1].lower()
                await t.rows("anchor_move", change.project, old, new, base, hashed)
            await t.rows("change_done", change.id, change.opened)
            if not added:
                return []
            about = {row["memory"]: row["version"] for row in added}
            events = [
                outgoing(number, subject, {"id": str(one), "version": version}, headers)
                for one, version in about.items()
            ]
            told = [{"id": str(event.id), "payload": json.loads(event.payload)} for event in events]
            await t.rows("announce_all", subject, told, dict(headers))
        return events

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
            found = await t.rows("stale_list", list(scopes), below, limit)
        return [Stale(rows.memory(row), row["evidence"]) for row in found]


def _mark(mark: Mark) -> dict[str, object]:
    return {
        "memory": str(mark.memory),
        "commit": mark.commit,
        "path": mark.path,
        "grade": mark.grade.value,
        "score": mark.score,
        "change": mark.change,
        "subject": mark.subject,
        "committed_at": mark.committed_at.isoformat(),
    }
