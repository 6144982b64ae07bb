"""Computes stale marks from stored changes: tracks anchors and propagates along edges."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import structlog

from reverie.contracts.events import OutgoingEvent
from reverie.contracts.memories.git import GitChange
from reverie.domain.access.scopes import slugify
from reverie.domain.entities.file_paths import is_same_file
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.staleness.anchor_tracking import AnchorTrail, track_anchor
from reverie.domain.staleness.commit_marks import COMMIT_KEY_PREFIX, weigh_commit_marks
from reverie.domain.staleness.file_changes import FileAnchor, FileChangeStep
from reverie.domain.staleness.propagation import (
    MAX_DEPTH,
    PropagatedMark,
    PropagationSource,
    propagate_step,
    select_sources,
)
from reverie.runtime.observability.tracing import span, trace_headers
from reverie.store.staleness.git_changes import StoredGitChange
from reverie.store.staleness.stale_marks import FileHistoryStep, LockedProject, TouchingMemory
from reverie_services.staleness.dependencies import StalenessDependencies
from reverie_services.staleness.marks.row_parsing import (
    concerns_memory,
    parse_anchor,
    parse_step,
)

log = structlog.get_logger("reverie.staleness")

ARCHIVE_BATCH = 200
FILE_BATCH = 250
"""The number of changed file names that are processed at once, under one lock."""
MAX_RENAMES = 50
"""The most names of one file that are followed."""
MAX_EDGES_PER_MEMORY = 20
PUBLISH_BATCH = 50
"""The number of events that are published one after the other."""


@dataclass(frozen=True)
class TrackedAnchor:
    """A memory that touches a file, and what became of that."""

    touching: TouchingMemory
    trail: AnchorTrail


async def apply_change(
    deps: StalenessDependencies, tenant: int, tenant_name: str, change_id: UUID
) -> None:
    """Marks what a change makes doubtful and moves anchors. Safe to repeat."""
    stored = await deps.changes.get(tenant, change_id)
    if stored is None or stored.processed:
        return
    tenant_key = (tenant, tenant_name)
    with span("apply change", files=len(stored.body.files)):
        event_count = 0
        await update_branch_memories(deps, tenant_key, stored)
        paths = _group_paths_by_name(stored.body)
        sorted_names = sorted(paths)
        for start in range(0, len(sorted_names), FILE_BATCH):
            names = sorted_names[start : start + FILE_BATCH]
            redactor = await deps.load_redactor(tenant)
            async with deps.stale_marks.lock_project(tenant_key, stored.project) as project:
                nodes = _match_anchors(await project.find_files(names), paths)
                events = await _recompute_marks(deps, project, nodes, redactor)
            await _publish_events(deps, tenant, events)
            event_count += len(events)
        async with deps.stale_marks.lock_project(tenant_key, stored.project) as project:
            await project.mark_processed(stored)
    log.info("change_applied", change=str(change_id), events=event_count)


async def update_branch_memories(
    deps: StalenessDependencies, tenant: tuple[int, str], stored: StoredGitChange
) -> None:
    """Applies the branch updates of a change. Safe to repeat."""
    body = stored.body
    if not body.is_on_main_branch:
        has_more = body.deleted
        while has_more:
            # In batches: a branch may have many memories, and the lock is held for each batch.
            async with deps.stale_marks.lock_project(tenant, stored.project) as project:
                archived = await project.archive_branch(
                    slugify(body.branch), ARCHIVE_BATCH, trace_headers()
                )
            has_more = archived >= ARCHIVE_BATCH
    elif body.merged and body.after:
        branches = sorted({slugify(name) for name in body.merged})
        async with deps.stale_marks.lock_project(tenant, stored.project) as project:
            tickets = await project.record_merged_branches(branches, stored.id, trace_headers())
        await deps.publisher.publish(tenant[0], tickets)


async def recompute_marks(
    deps: StalenessDependencies, tenant: int, tenant_name: str, project_name: str, memory_id: UUID
) -> None:
    """Works out the marks of one memory by the files that it touches. Safe to repeat."""
    tenant_key = (tenant, tenant_name)
    with span("recompute marks", memory=str(memory_id)):
        redactor = await deps.load_redactor(tenant)
        async with deps.stale_marks.lock_project(tenant_key, project_name) as project:
            nodes = await project.load_files_of_memory(memory_id)
            events = await _recompute_marks(deps, project, nodes, redactor, memory_id)
        await _publish_events(deps, tenant, events)


async def _publish_events(
    deps: StalenessDependencies, tenant: int, events: Sequence[OutgoingEvent]
) -> None:
    """Publishes batches concurrently; each event waits for the acknowledgement of the bus."""
    batches = (
        events[start : start + PUBLISH_BATCH] for start in range(0, len(events), PUBLISH_BATCH)
    )
    publications = (deps.publisher.publish(tenant, batch) for batch in batches)
    await asyncio.gather(*publications)


def _group_paths_by_name(change: GitChange) -> dict[str, list[str]]:
    """The paths that may be anchored, by their last component in lower case."""
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for file in change.files:
        for path in {file.path, file.old_path or file.path}:
            paths[_get_file_name(path)].append(path)
    return paths


def _match_anchors(
    anchors: Iterable[tuple[UUID, str, str]], changed: Mapping[str, Sequence[str]]
) -> dict[UUID, str]:
    """The anchors whose present or former path is a changed one: an old change may come late."""
    return {
        node: path
        for node, path, known_as in anchors
        if any(is_same_file(known_as, other) for other in changed.get(_get_file_name(known_as), ()))
    }


async def _recompute_marks(
    deps: StalenessDependencies,
    project: LockedProject,
    nodes: Mapping[UUID, str],
    redactor: Redactor,
    memory_id: UUID | None = None,
) -> list[OutgoingEvent]:
    """Recomputes the marks of the memories, or of one, that touch these files.

    Returns the events to publish.
    """
    touching = await project.load_memories_of_files(list(nodes), memory_id) if nodes else []
    if not touching:
        return []
    tracked = await _track_anchors(project, touching, nodes)
    await _move_anchors(project, tracked, nodes)
    direct = [
        PropagationSource(mark, item.touching.node, item.touching.scope)
        for item in tracked
        for mark in (item.trail.marks if deps.marks_memories else ())
    ]
    # Many marks share few subjects: each subject is redacted once.
    redacted_subjects = {
        item: redactor.redact(item).text for item in {source.mark.subject for source in direct}
    }
    direct_marks = [PropagatedMark(item, item.mark.memory, item.mark.score) for item in direct]
    reached = [*direct_marks, *await _propagate(project, direct)]
    marks = [_build_mark_row(item, redacted_subjects) for item in reached]
    origins = sorted({item.memory for item in touching})
    return await project.replace_marks(origins, list(nodes), marks, trace_headers())


async def _track_anchors(
    project: LockedProject, touching: Sequence[TouchingMemory], nodes: Mapping[UUID, str]
) -> list[TrackedAnchor]:
    """Computes the state of each anchor. Intermediate file names are read until none is new."""
    anchors = [parse_anchor(item, nodes[item.node]) for item in touching]
    since = min((item.written_at or item.known_at for item in anchors), default=datetime.now(UTC))
    # Git stores whole seconds: a later commit may seem to be up to a second older.
    since -= timedelta(seconds=1)
    steps: list[FileHistoryStep] = []
    known_names: set[str] = set()
    names = {_get_file_name(item.path) for item in anchors}
    for _ in range(MAX_RENAMES):
        if not names:
            break
        known_names |= names
        # All names are read again, so that the steps of all files come in one order.
        steps = await project.load_file_steps(sorted(known_names), since)
        names = {
            _get_file_name(step.facts["path"])
            for step in steps
            if step.facts.get("status") == "renamed"
        } - known_names
    by_name = _group_steps_by_name(steps)
    commits = {item.promoted.commit for item in touching if item.promoted}
    merges = await project.load_changes_by_commit(sorted(commits)) if commits else {}
    return [
        TrackedAnchor(item, _track_anchor(item, anchor, by_name, merges))
        for item, anchor in zip(touching, anchors, strict=True)
    ]


def _track_anchor(
    touching: TouchingMemory,
    anchor: FileAnchor,
    by_name: Mapping[str, list[_PositionedStep]],
    merges: Mapping[str, frozenset[UUID]],
) -> AnchorTrail:
    """Follows an anchor over the steps of every name that it may have got."""
    names, new_names = {_get_file_name(anchor.path)}, [_get_file_name(anchor.path)]
    while new_names:
        renamed = [
            _get_file_name(placed.step.file.path)
            for name in new_names
            for placed in by_name.get(name, ())
            if placed.step.file.status == "renamed"
        ]
        new_names = [name for name in dict.fromkeys(renamed) if name not in names]
        names |= set(new_names)
    own_steps = {
        placed.position: placed.step
        for name in names
        for placed in by_name.get(name, ())
        if concerns_memory(touching, placed.raw, merges)
    }
    steps = [own_steps[position] for position in sorted(own_steps)]
    if not (touching.key or "").startswith(COMMIT_KEY_PREFIX):
        return track_anchor(anchor, steps, is_same_file)
    git = touching.git or {}
    # A merge may bring the commit to the branch long after it was made.
    steps = [step for step in steps if step.commit.sha != git.get("commit")]
    trail = track_anchor(anchor, steps, is_same_file)
    return replace(trail, marks=weigh_commit_marks(trail.marks, len(git.get("files", ()))))


@dataclass(frozen=True)
class _PositionedStep:
    """A step, its place among all, and how it is stored."""

    position: int
    step: FileChangeStep
    raw: FileHistoryStep


def _group_steps_by_name(steps: Iterable[FileHistoryStep]) -> dict[str, list[_PositionedStep]]:
    steps_by_name: defaultdict[str, list[_PositionedStep]] = defaultdict(list)
    for position, raw in enumerate(steps):
        placed = _PositionedStep(position, parse_step(raw), raw)
        for name in {
            _get_file_name(placed.step.file.path),
            _get_file_name(placed.step.file.previous_path),
        }:
            steps_by_name[name].append(placed)
    return steps_by_name


async def _move_anchors(
    project: LockedProject, tracked: Sequence[TrackedAnchor], nodes: Mapping[UUID, str]
) -> None:
    """Moves the anchors to the current paths of their files.

    A node is renamed if all memories that touch it move there; otherwise the moving ones get an
    edge to another node.
    """
    by_node: defaultdict[UUID, list[TrackedAnchor]] = defaultdict(list)
    for item in tracked:
        by_node[item.touching.node].append(item)
    for node, group in by_node.items():
        moving = [
            item for item in group if item.trail.previous_paths and item.trail.path != nodes[node]
        ]
        targets = {item.trail.path for item in moving}
        all_move = len(targets) == 1 and len(moving) == len(group) > 0
        if all_move and await project.rename_file(
            node, next(iter(targets)), _collect_intermediate_paths(moving)
        ):
            continue
        for target in sorted(targets):
            followers = [item for item in moving if item.trail.path == target]
            memories = [item.touching.memory for item in followers]
            await project.move_memories(
                node, target, memories, _collect_intermediate_paths(followers)
            )
    for item in tracked:
        for anchor in item.trail.moved_anchors:
            await project.put_touch_edge(
                anchor.memory, anchor.path, _build_edge_metadata(anchor, item.trail.path)
            )


def _collect_intermediate_paths(moving: Iterable[TrackedAnchor]) -> list[str]:
    """Collects the names that files had before the current one; changes under these may arrive
    late.
    """
    return sorted({path for item in moving for path in item.trail.previous_paths[1:]})


def _build_edge_metadata(anchor: FileAnchor, from_path: str) -> dict[str, Any]:
    """Builds the metadata of the edge to a file into which code has moved."""
    located = [part for part in anchor.ranges if part.has_lines]
    return {
        "path": anchor.path,
        "lines": [[part.first, part.last] for part in located if not part.name],
        "symbols": [[part.name, part.first, part.last] for part in located if part.name],
        "since": anchor.known_at.isoformat(),
        "moved_from": from_path,
    }


async def _propagate(
    project: LockedProject, direct: Sequence[PropagationSource]
) -> list[PropagatedMark]:
    """The marks on the memories that depend on others, within `MAX_DEPTH` edges."""
    reached_by_key: dict[tuple[UUID, UUID, UUID], PropagatedMark] = {}
    frontier: Collection[PropagatedMark] = select_sources(direct)
    for _ in range(MAX_DEPTH):
        frontier_ids = sorted({item.memory for item in frontier})
        if not frontier_ids:
            break
        edges = await project.load_propagation_edges(frontier_ids, MAX_EDGES_PER_MEMORY)
        frontier = propagate_step(list(frontier), edges, reached_by_key)
    return list(reached_by_key.values())


def _build_mark_row(propagated: PropagatedMark, subjects: Mapping[str, str]) -> dict[str, Any]:
    mark = propagated.source.mark
    return {
        "memory": str(propagated.memory),
        "commit": mark.commit,
        "path": mark.path,
        "grade": propagated.grade.value,
        "score": propagated.score,
        "change": mark.change,
        "subject": subjects[mark.subject],
        "committed_at": mark.committed_at.isoformat(),
        "event": str(mark.change_id),
        "node": str(propagated.source.node),
        "origin": str(mark.memory),
        "via": list(propagated.via),
        "lines": [list(span) for span in mark.lines] if not propagated.via else [],
    }


def _get_file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1].lower()
