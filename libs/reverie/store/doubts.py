"""What became of the anchors of a project, worked out under its lock and written in one piece."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.contracts.events import Outgoing, dream_subject, memory_subject, outgoing
from reverie.domain.access import Principal
from reverie.domain.anchors import same_file
from reverie.domain.edges import EdgeKind
from reverie.domain.errors import Forbidden, Invalid, NotFound
from reverie.domain.ids import new_id
from reverie.domain.impact import Leaning
from reverie.domain.memory import content_hash
from reverie.domain.spreading import Lasting
from reverie.store.changes import Stored
from reverie.store.database import Database, Tenant
from reverie.store.effects import called_once


@dataclass(frozen=True)
class Touching:
    """A memory that touches an anchored file: what it and its edge know of it, as stored."""

    memory: UUID
    node: UUID
    scope: str
    meta: dict[str, Any]
    git: dict[str, Any] | None
    promoted: dict[str, Any] | None
    content: str
    known_at: datetime
    checked: datetime | None


@dataclass(frozen=True)
class FileStep:
    """A changed file of a stored change. `facts`: as it was told, with its commit."""

    event: UUID
    branch: str
    main: bool
    known_at: datetime
    facts: dict[str, Any]


class Doubts:
    """The marks of all tenants, project by project."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def confirm(
        self, who: Principal, memory: UUID, headers: Mapping[str, str]
    ) -> tuple[int, int, list[Outgoing]]:
        """Notes that a memory holds as the code stands. Answers its version, how many reasons for
        doubt that ends, and the events to publish. Raises `NotFound`, `Forbidden`, `Invalid`."""
        found: dict[str, Any] = await called_once(
            self._db,
            "memory_confirm",
            who.tenant,
            f"confirm {memory}",
            *_confirming(who, memory, headers),
        )
        return _confirmed(who, memory, found, headers)

    async def lacking(
        self, who: Principal, project: str, below: UUID | None, limit: int
    ) -> list[dict[str, Any]]:
        """Memories that the key may write, which touch files and know nothing in them, newest
        first: memory, content, learned_at, files."""
        async with self._db.tenant(who.tenant) as t:
            grants = (list(who.reads), list(who.writable))
            found = await t.rows("anchors_lacking", project, *grants, below, limit)
        return [dict(row) for row in found]

    async def writable(
        self, who: Principal, project: str, memories: Sequence[UUID]
    ) -> dict[UUID, int]:
        """The versions of memories. Raises `NotFound` where one of these is no memory of the
        project that the key may read and write."""
        async with self._db.tenant(who.tenant) as t:
            grants = (list(who.reads), list(who.writable))
            found = await t.rows("memories_writable", list(memories), *grants, project)
        versions = {row["id"]: row["version"] for row in found}
        if missing := set(memories) - versions.keys():
            raise NotFound("memory", str(min(missing)))
        return versions

    @asynccontextmanager
    async def of(self, tenant: tuple[int, str], project: str) -> AsyncIterator[Project]:
        """One project's anchors and marks, in a transaction that no other one overlaps.

        Whoever works them out sees all that the one before has written: what is derived from an
        older state of the changes never takes the place of what a newer one said.
        """
        async with self._db.tenant(tenant[0]) as t:
            await t.rows("project_lock", project)
            yield Project(t, tenant[1], project)


class Project:
    """Reads and writes within such a transaction."""

    def __init__(self, tenant: Tenant, tenant_name: str, project: str) -> None:
        self._t = tenant
        self._name = tenant_name
        self._project = project

    async def anchors(self, names: Sequence[str]) -> list[tuple[UUID, str, str]]:
        """Files whose last component, in lower case, is or was in `names`: the node, the path that
        it has, and the one by which it was found."""
        found = await self._t.rows("anchors_named", self._project, list(names))
        return [(row["node"], row["path"], row["known_as"]) for row in found]

    async def touched(self, memory: UUID) -> dict[UUID, str]:
        """Paths by node of the files that a memory touches."""
        found = await self._t.rows("anchors_touched", memory, self._project)
        return {row["node"]: row["path"] for row in found}

    async def touching(self, nodes: Sequence[UUID], memory: UUID | None) -> list[Touching]:
        """Active memories, or of them the one, that touch the files."""
        found = await self._t.rows("anchored_memories", list(nodes), self._project, memory)
        return [Touching(**{k: row[k] for k in Touching.__annotations__}) for row in found]

    async def steps(self, names: Sequence[str], since: datetime) -> list[FileStep]:
        """What happened to files of these names, oldest first."""
        found = await self._t.rows("file_steps", self._project, list(names), since)
        return [FileStep(**row) for row in found]

    async def ended_in(self, commits: Sequence[str]) -> dict[str, frozenset[UUID]]:
        """The changes that led to these commits, by commit."""
        found = await self._t.rows("changes_to", self._project, list(commits))
        return {row["after"]: frozenset(row["ids"]) for row in found}

    async def leaning(self, near: Sequence[UUID], most: int) -> list[tuple[Leaning, Lasting]]:
        """Edges along which doubt spreads from memories, and who is at their other ends."""
        found = await self._t.rows("leaning", list(near), most)
        return [
            (
                Leaning(r["near"], r["far"], EdgeKind(r["kind"]), r["outward"], r["weight"]),
                Lasting(r["scope"], r["known_at"]),
            )
            for r in found
        ]

    async def node(self, path: str) -> UUID | None:
        """The node of a file, made where it is missing; None where its key is taken."""
        hashed = bytes.fromhex(content_hash(path))
        found = await self._t.value(
            "anchor_file", self._project, path, _last(path), new_id(), hashed
        )
        return None if found is None else UUID(str(found))

    async def rename(self, node: UUID, path: str, between: Sequence[str] = ()) -> bool:
        """Gives a node another path, which had those `between` on the way; False where another node
        has it."""
        hashed = bytes.fromhex(content_hash(path))
        renamed = bool(await self._t.value("anchor_rename", node, path, _last(path), hashed))
        if renamed:
            await self._known_as(node, between)
        return renamed

    async def rehome(
        self, node: UUID, path: str, memories: Sequence[UUID], between: Sequence[str] = ()
    ) -> None:
        """Lets memories that touch a node touch that of the path, which had those `between`."""
        to = await self.node(path)
        if to is not None and to != node:
            await self._t.rows("anchor_rehome", node, to, sorted(memories))
            await self._known_as(to, between)

    async def _known_as(self, node: UUID, paths: Sequence[str]) -> None:
        if paths:
            names = [_last(path) for path in paths]
            await self._t.rows("anchor_known_as", node, self._project, list(paths), names)

    async def anchor(self, memory: UUID, path: str, meta: Mapping[str, Any]) -> None:
        """Lets a memory touch a file that it named less well, with what it knows of it now."""
        for node, known in (await self.touched(memory)).items():
            if known != path and same_file(known, path):
                await self.rehome(node, path, [memory])
        await self.touch(memory, path, meta)

    async def touch(self, memory: UUID, path: str, meta: Mapping[str, Any]) -> None:
        """Lets a memory touch a file, with what it knows of it."""
        to = await self.node(path)
        if to is not None and to != memory:
            await self._t.many("edge_put", [(new_id(), memory, "touches", to, 1.0, dict(meta))])

    async def replace(
        self,
        origins: Sequence[UUID],
        nodes: Sequence[UUID],
        event: UUID,
        marks: Sequence[Mapping[str, Any]],
        headers: Mapping[str, str],
    ) -> list[Outgoing]:
        """Puts the marks in place of those that stood; answers the events of who is in doubt now
        and was not by that, and of who is in none any more."""
        once: dict[tuple[object, ...], Mapping[str, Any]] = {}
        for mark in sorted(marks, key=lambda one: float(one["score"])):
            # One commit may touch a file in several of its steps: the gravest stands for it.
            once[mark["memory"], mark["commit"], mark["path"], mark["origin"]] = mark
        found = await self._t.rows(
            "marks_replace", list(origins), list(nodes), event, [dict(m) for m in once.values()]
        )
        told: list[Outgoing] = []
        for name, doubted in (("staled", True), ("cleared", False)):
            about = {row["memory"]: row["version"] for row in found if row["open"] is doubted}
            told += await self._announce(name, about, headers)
        return told

    async def merged(
        self, branches: Sequence[str], event: UUID, headers: Mapping[str, str]
    ) -> list[Outgoing]:
        """Notes that a change brought branches in, and asks for the dreams that promote their
        memories. Answers the tickets to publish."""
        home = f"project/{self._project}"
        scopes = [home, *(f"{home}/feature/{branch}" for branch in branches)]
        tickets = {
            scope: outgoing(self._t.id, dream_subject(self._name, scope), {"scope": scope}, headers)
            for scope in scopes
        }
        told = [
            {"scope": scope, "id": str(one.id), "subject": one.subject}
            for scope, one in tickets.items()
        ]
        given = (self._project, event, list(branches), told, dict(headers))
        return [tickets[row["scope"]] for row in await self._t.rows("branches_merged", *given)]

    async def archive(self, branch: str, limit: int, headers: Mapping[str, str]) -> int:
        """Archives up to `limit` memories of a deleted branch; answers how many there were."""
        given = (self._name, self._project, branch, limit, dict(headers))
        return int(await self._t.value("branch_archive", *given))

    async def done(self, change: Stored) -> None:
        """Notes that a change was applied, unless it was told better since it was read."""
        await self._t.rows("change_done", change.id, change.told)

    async def _announce(
        self, name: str, about: Mapping[UUID, int], headers: Mapping[str, str]
    ) -> list[Outgoing]:
        if not about:
            return []
        subject = memory_subject(self._name, name)
        events = [
            outgoing(self._t.id, subject, {"id": str(one), "version": version}, headers)
            for one, version in about.items()
        ]
        told = [{"id": str(event.id), "payload": json.loads(event.payload)} for event in events]
        await self._t.rows("announce_all", subject, told, dict(headers))
        return events


async def confirm_within(
    tenant: Tenant, who: Principal, memory: UUID, headers: Mapping[str, str]
) -> list[Outgoing]:
    """Notes that a memory holds as part of a transaction; answers the events. Raises as above."""
    found = await tenant.value("memory_confirm", *_confirming(who, memory, headers))
    return _confirmed(who, memory, found, headers)[2]


def _confirming(who: Principal, memory: UUID, headers: Mapping[str, str]) -> tuple[object, ...]:
    return (who.tenant_name, memory, list(who.reads), list(who.writable), dict(headers))


def _confirmed(
    who: Principal, memory: UUID, found: Mapping[str, Any], headers: Mapping[str, str]
) -> tuple[int, int, list[Outgoing]]:
    match found.get("problem"):
        case "not_found":
            raise NotFound("memory", str(memory))
        case "forbidden":
            raise Forbidden("write", found["scope"])
        case "made":
            raise Invalid("id", "file and entity nodes are made from what memories touch")
    version, event = found["version"], found["event"]
    subject = memory_subject(who.tenant_name, "cleared")
    body = {"id": str(memory), "version": version}
    told = [outgoing(who.tenant, subject, body, headers, UUID(event))] if event else []
    return version, found["cleared"], told


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1].lower()
