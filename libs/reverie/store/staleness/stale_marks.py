"""Updates the file anchors and stale marks of a project under its lock."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.contracts.events import (
    OutgoingEvent,
    build_outgoing_event,
    dream_subject,
    memory_subject,
)
from reverie.contracts.memories.system_metadata import PromotionDetails, parse_promotion
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import NotFound
from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import EdgeKind
from reverie.domain.core.memory import hash_content
from reverie.domain.entities.file_paths import is_same_file
from reverie.domain.staleness.propagation import DependencyEdge, PropagationTarget
from reverie.store.db.database import Database, TenantConnection
from reverie.store.db.idempotency import call_once
from reverie.store.memories.edits import build_write_error
from reverie.store.staleness.git_changes import StoredGitChange


@dataclass(frozen=True)
class TouchingMemory:
    """A memory that touches an anchored file: what it and its edge know of it, as stored."""

    memory: UUID
    node: UUID
    scope: str
    meta: dict[str, Any]
    git: dict[str, Any] | None
    promoted: PromotionDetails | None
    content: str
    known_at: datetime
    checked: datetime | None
    key: str | None = None


@dataclass(frozen=True)
class FileHistoryStep:
    """A changed file of a stored change. `facts`: as reported, with its commit.

    `known_at` and `latest`: the earliest and the latest moment at which it took effect.
    """

    event: UUID
    branch: str
    main: bool
    known_at: datetime
    facts: dict[str, Any]
    latest: datetime | None = None


class StaleMarkStore:
    """The marks of all tenants, project by project."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def confirm(
        self, principal: Principal, memory: UUID, headers: Mapping[str, str]
    ) -> tuple[int, int, list[OutgoingEvent]]:
        """Records that a memory holds for the current code.

        Returns its version, the number of cleared reasons for doubt, and the events to publish.
        Raises `NotFound`, `Forbidden`, `InvalidInput`.
        """
        found: dict[str, Any] = await call_once(
            self._db,
            "memory_confirm",
            principal.tenant,
            f"confirm {memory}",
            *_confirm_args(principal, memory, headers),
        )
        return _parse_confirmation(principal, memory, found, headers)

    async def list_unlocated(
        self, principal: Principal, project: str, below: UUID | None, limit: int
    ) -> list[dict[str, Any]]:
        """Memories that the key may write, which touch files and know nothing in them, newest
        first: memory, content, created_at, files."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            grants = (list(principal.reads), list(principal.writable_patterns))
            found = await connection.fetch_rows(
                "unlocated_memories", project, *grants, below, limit
            )
        return [dict(row) for row in found]

    async def load_writable_versions(
        self, principal: Principal, project: str, memories: Sequence[UUID]
    ) -> dict[UUID, int]:
        """Returns the versions of memories.

        Raises `NotFound` if one is not a memory of the project that the key may read and write.
        """
        async with self._db.tenant_transaction(principal.tenant) as connection:
            grants = (list(principal.reads), list(principal.writable_patterns))
            found = await connection.fetch_rows(
                "memories_writable", list(memories), *grants, project
            )
        versions = {row["id"]: row["version"] for row in found}
        if missing := set(memories) - versions.keys():
            raise NotFound("memory", str(min(missing)))
        return versions

    @asynccontextmanager
    async def lock_project(
        self, tenant: tuple[int, str], project: str
    ) -> AsyncIterator[LockedProject]:
        """Locks one project's anchors and marks in an exclusive transaction.

        Each caller sees everything that the one before has written. So results from an older state
        of the changes never replace those of a newer one.
        """
        async with self._db.tenant_transaction(tenant[0]) as connection:
            await connection.fetch_rows("project_lock", project)
            yield LockedProject(connection, tenant[1], project)


class LockedProject:
    """Reads and writes within such a transaction."""

    def __init__(self, connection: TenantConnection, tenant_name: str, project: str) -> None:
        self._connection = connection
        self._tenant_name = tenant_name
        self._project = project

    async def find_files(self, names: Sequence[str]) -> list[tuple[UUID, str, str]]:
        """Finds files whose last component, in lower case, is or was in `names`.

        Returns the node, its current path, and the path that matched.
        """
        found = await self._connection.fetch_rows("anchors_by_name", self._project, list(names))
        return [(row["node"], row["path"], row["known_as"]) for row in found]

    async def load_files_of_memory(self, memory: UUID) -> dict[UUID, str]:
        """Paths by node of the files that a memory touches."""
        found = await self._connection.fetch_rows("anchors_of_memory", memory, self._project)
        return {row["node"]: row["path"] for row in found}

    async def load_memories_of_files(
        self, nodes: Sequence[UUID], memory: UUID | None
    ) -> list[TouchingMemory]:
        """Active memories, or of them the one, that touch the files."""
        found = await self._connection.fetch_rows(
            "anchored_memories", list(nodes), self._project, memory
        )
        return [
            TouchingMemory(
                **{name: row[name] for name in TouchingMemory.__annotations__}
                | {"promoted": parse_promotion(row["promoted"])}
            )
            for row in found
        ]

    async def load_file_steps(self, names: Sequence[str], since: datetime) -> list[FileHistoryStep]:
        """Returns the changes of files with these names, oldest first."""
        found = await self._connection.fetch_rows("file_steps", self._project, list(names), since)
        return [FileHistoryStep(**row) for row in found]

    async def load_changes_by_commit(self, commits: Sequence[str]) -> dict[str, frozenset[UUID]]:
        """The changes that led to these commits, by commit."""
        found = await self._connection.fetch_rows("changes_by_commit", self._project, list(commits))
        return {row["after"]: frozenset(row["ids"]) for row in found}

    async def load_propagation_edges(
        self, memories: Sequence[UUID], limit: int
    ) -> list[tuple[DependencyEdge, PropagationTarget]]:
        """Edges along which doubt spreads from memories, and who is at their other ends."""
        found = await self._connection.fetch_rows("propagation_edges", list(memories), limit)
        return [
            (
                DependencyEdge(
                    row["near"], row["far"], EdgeKind(row["kind"]), row["outward"], row["weight"]
                ),
                PropagationTarget(row["scope"], row["known_at"]),
            )
            for row in found
        ]

    async def ensure_file_node(self, path: str) -> UUID | None:
        """Returns the node of a file, created if missing; None if its key is used by another."""
        path_hash = bytes.fromhex(hash_content(path))
        found = await self._connection.fetch_value(
            "ensure_file_node", self._project, path, _file_name(path), new_id(), path_hash
        )
        return None if found is None else UUID(str(found))

    async def rename_file(self, node: UUID, path: str, earlier_paths: Sequence[str] = ()) -> bool:
        """Changes the path of a node; False if another node has that path.

        `earlier_paths`: its paths in between.
        """
        path_hash = bytes.fromhex(hash_content(path))
        renamed = bool(
            await self._connection.fetch_value(
                "rename_file", node, path, _file_name(path), path_hash
            )
        )
        if renamed:
            await self._add_earlier_paths(node, earlier_paths)
        return renamed

    async def move_memories(
        self, node: UUID, path: str, memories: Sequence[UUID], earlier_paths: Sequence[str] = ()
    ) -> None:
        """Moves the edges of a file node to the node of its new path."""
        target = await self.ensure_file_node(path)
        if target is not None and target != node:
            await self._connection.fetch_rows("move_touches", node, target, sorted(memories))
            await self._add_earlier_paths(target, earlier_paths)

    async def _add_earlier_paths(self, node: UUID, paths: Sequence[str]) -> None:
        if paths:
            names = [_file_name(path) for path in paths]
            await self._connection.fetch_rows(
                "file_rename_add", node, self._project, list(paths), names
            )

    async def anchor_memory(self, memory: UUID, path: str, meta: Mapping[str, Any]) -> None:
        """Lets a memory touch a file that it named less well, with what it knows of it now."""
        for node, known_path in (await self.load_files_of_memory(memory)).items():
            if known_path != path and is_same_file(known_path, path):
                await self.move_memories(node, path, [memory])
        await self.put_touch_edge(memory, path, meta)

    async def put_touch_edge(self, memory: UUID, path: str, meta: Mapping[str, Any]) -> None:
        """Lets a memory touch a file, with what it knows of it."""
        target = await self.ensure_file_node(path)
        if target is not None and target != memory:
            await self._connection.execute_many(
                "edge_put", [(new_id(), memory, "touches", target, 1.0, dict(meta))]
            )

    async def replace_marks(
        self,
        origins: Sequence[UUID],
        nodes: Sequence[UUID],
        marks: Sequence[Mapping[str, Any]],
        headers: Mapping[str, str],
    ) -> list[OutgoingEvent]:
        """Replaces the earlier marks.

        Returns the events of memories that became doubtful or are no longer doubtful.
        """
        worst_marks: dict[tuple[object, ...], Mapping[str, Any]] = {}
        for mark in sorted(marks, key=lambda candidate: float(candidate["score"])):
            # One commit may change a file in several of its steps: the most severe represents it.
            worst_marks[mark["memory"], mark["commit"], mark["path"], mark["origin"]] = mark
        found = await self._connection.fetch_rows(
            "replace_marks",
            list(origins),
            list(nodes),
            [dict(m) for m in worst_marks.values()],
        )
        events: list[OutgoingEvent] = []
        for name, is_stale in (("staled", True), ("cleared", False)):
            versions = {row["memory"]: row["version"] for row in found if row["open"] is is_stale}
            events += await self._store_events(name, versions, headers)
        return events

    async def record_merged_branches(
        self, branches: Sequence[str], event_id: UUID, headers: Mapping[str, str]
    ) -> list[OutgoingEvent]:
        """Records that a change merged branches, and requests dreams that promote their memories.

        Returns the tickets to publish.
        """
        project_scope = f"project/{self._project}"
        scopes = [project_scope, *(f"{project_scope}/feature/{branch}" for branch in branches)]
        tickets = {
            scope: build_outgoing_event(
                self._connection.id,
                dream_subject(self._tenant_name, scope),
                {"scope": scope},
                headers,
            )
            for scope in scopes
        }
        ticket_records = [
            {"scope": scope, "id": str(ticket.id), "subject": ticket.subject}
            for scope, ticket in tickets.items()
        ]
        args = (self._project, event_id, list(branches), ticket_records, dict(headers))
        requested = await self._connection.fetch_rows("request_branch_promotion", *args)
        return [tickets[row[0]] for row in requested]

    async def archive_branch(self, branch: str, limit: int, headers: Mapping[str, str]) -> int:
        """Archives up to `limit` memories of a deleted branch; returns their number."""
        args = (self._tenant_name, self._project, branch, limit, dict(headers))
        return int(await self._connection.fetch_value("branch_archive", *args))

    async def mark_processed(self, change: StoredGitChange) -> None:
        """Marks a change as applied, unless its body was replaced since it was read."""
        await self._connection.fetch_rows("change_mark_processed", change.id, change.body_hash)

    async def _store_events(
        self, name: str, versions: Mapping[UUID, int], headers: Mapping[str, str]
    ) -> list[OutgoingEvent]:
        if not versions:
            return []
        subject = memory_subject(self._tenant_name, name)
        events = [
            build_outgoing_event(
                self._connection.id, subject, {"id": str(memory_id), "version": version}, headers
            )
            for memory_id, version in versions.items()
        ]
        event_records = [
            {"id": str(event.id), "payload": json.loads(event.payload)} for event in events
        ]
        await self._connection.fetch_rows("outbox_add", subject, event_records, dict(headers))
        return events


async def confirm_in_transaction(
    connection: TenantConnection, principal: Principal, memory: UUID, headers: Mapping[str, str]
) -> list[OutgoingEvent]:
    """Records within a transaction that a memory holds; returns the events. Raises as above."""
    found = await connection.fetch_value(
        "memory_confirm", *_confirm_args(principal, memory, headers)
    )
    return _parse_confirmation(principal, memory, found, headers)[2]


def _confirm_args(
    principal: Principal, memory: UUID, headers: Mapping[str, str]
) -> tuple[object, ...]:
    return (
        principal.tenant_name,
        memory,
        list(principal.reads),
        list(principal.writable_patterns),
        dict(headers),
    )


def _parse_confirmation(
    principal: Principal, memory: UUID, found: Mapping[str, Any], headers: Mapping[str, str]
) -> tuple[int, int, list[OutgoingEvent]]:
    if "problem" in found:
        raise build_write_error(memory, found)
    version, event_id = found["version"], found["event"]
    subject = memory_subject(principal.tenant_name, "cleared")
    body = {"id": str(memory), "version": version}
    events = (
        [build_outgoing_event(principal.tenant, subject, body, headers, UUID(event_id))]
        if event_id
        else []
    )
    return version, found["cleared"], events


def _file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1].lower()
