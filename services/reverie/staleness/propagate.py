"""From stored changes to marks on memories: what became of each anchor, and who leans on it.

Nothing is counted on: the marks of a memory by a file are worked out anew from all changes of that
file since the memory was known. So a change may come twice, late or out of order.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import structlog

from reverie.bus.relay import publish_now
from reverie.contracts.events import Outgoing
from reverie.contracts.git import GitChange
from reverie.domain.anchors import same_file
from reverie.domain.following import Trail, follow
from reverie.domain.impact import DEPTH
from reverie.domain.known_secrets import knowing
from reverie.domain.redaction import redact
from reverie.domain.spreading import Reached, Source, onward, sources
from reverie.domain.staleness import Anchored, Step
from reverie.runtime.telemetry import inject_headers, span
from reverie.staleness.branches import settle_branches
from reverie.staleness.parts import Parts
from reverie.staleness.reading import anchored, seen_by, step_of
from reverie.store.doubts import FileStep, Project, Touching

log = structlog.get_logger("reverie.staleness")

FILES = 250
"""How many names of changed files are worked out at once, under one lock."""
RENAMES = 50
"""How many names of one file are followed."""
EDGES_A_MEMORY = 20
TOLD = 50
"""How many events are published one after the other."""


@dataclass(frozen=True)
class Followed:
    """A memory that touches a file, and what became of that."""

    touching: Touching
    trail: Trail


async def apply_change(parts: Parts, tenant: int, tenant_name: str, change_id: UUID) -> None:
    """Marks what a change makes doubtful and moves anchors. Safe to repeat."""
    stored = await parts.changes.get(tenant, change_id)
    if stored is None or stored.processed:
        return
    whose = (tenant, tenant_name)
    with span("apply change", files=len(stored.body.files)):
        told = 0
        await settle_branches(parts, whose, stored)
        paths = _paths(stored.body)
        ordered = sorted(paths)
        for start in range(0, len(ordered), FILES):
            names = ordered[start : start + FILES]
            wanted = [path for name in names for path in paths[name]]
            known = await parts.known_of(tenant)
            async with parts.doubts.of(whose, stored.project) as project:
                nodes = _meant(await project.anchors(names), wanted)
                with knowing(known, lambda _: False):
                    events = await _work_out(project, nodes, change_id)
            await _publish(parts, tenant, events)
            told += len(events)
        async with parts.doubts.of(whose, stored.project) as project:
            await project.done(stored)
    log.info("change_applied", change=str(change_id), told=told)


async def look_again(
    parts: Parts, tenant: int, tenant_name: str, project_name: str, memory: UUID
) -> None:
    """Works out the marks of one memory by the files that it touches. Safe to repeat."""
    whose = (tenant, tenant_name)
    with span("look again", memory=str(memory)):
        known = await parts.known_of(tenant)
        async with parts.doubts.of(whose, project_name) as project:
            nodes = await project.touched(memory)
            with knowing(known, lambda _: False):
                events = await _work_out(project, nodes, memory, memory)
        await _publish(parts, tenant, events)


async def _publish(parts: Parts, tenant: int, events: Sequence[Outgoing]) -> None:
    """Some at a time beside one another: each waits for the bus to have it."""
    some = (events[n : n + TOLD] for n in range(0, len(events), TOLD))
    told = (publish_now(parts.bus, parts.outbox, tenant, one) for one in some)
    await asyncio.gather(*told)


def _paths(change: GitChange) -> dict[str, list[str]]:
    """The paths that may be anchored, by their last component in lower case."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for file in change.files:
        for path in {file.path, file.old_path or file.path}:
            found[_last(path)].append(path)
    return found


def _meant(anchors: Iterable[tuple[UUID, str, str]], changed: Sequence[str]) -> dict[UUID, str]:
    """The anchors that a changed path may mean, also by a name that they had: it may come late."""
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    for path in changed:
        by_name[_last(path)].append(path)
    return {
        node: path
        for node, path, known_as in anchors
        if any(same_file(known_as, one) for one in by_name[_last(known_as)])
    }


async def _work_out(
    project: Project, nodes: Mapping[UUID, str], event: UUID, memory: UUID | None = None
) -> list[Outgoing]:
    """The marks of the memories, or of one, that touch these files; answers who to tell of it."""
    touching = await project.touching(list(nodes), memory) if nodes else []
    if not touching:
        return []
    followed = await _followed(project, touching, nodes)
    await _settle(project, followed, nodes)
    direct = [
        Source(mark, one.touching.node, one.touching.scope)
        for one in followed
        for mark in one.trail.marks
    ]
    # A change of many files has few subjects.
    told = {one: redact(one).text for one in {source.mark.subject for source in direct}}
    reached = [*map(_own, direct), *await _spreading(project, direct)]
    marks = [_row(one, told) for one in reached]
    origins = sorted({one.memory for one in touching})
    return await project.replace(origins, list(nodes), event, marks, inject_headers())


async def _followed(
    project: Project, touching: Sequence[Touching], nodes: Mapping[UUID, str]
) -> list[Followed]:
    """What became of each anchor. Names that a file got on the way are read until none is new."""
    anchors = [anchored(one, nodes[one.node]) for one in touching]
    since = min((one.wrote or one.known_at for one in anchors), default=datetime.now(UTC))
    steps: list[FileStep] = []
    known: set[str] = set()
    names = {_last(one.path) for one in anchors}
    for _ in range(RENAMES):
        if not names:
            break
        known |= names
        # All anew: a step's place among the others counts.
        steps = await project.steps(sorted(known), since)
        names = {_last(one.facts["path"]) for one in steps if _renames(one)} - known
    by_name = _by_name(steps)
    commits = {str(one.promoted.get("commit")) for one in touching if one.promoted}
    merges = await project.ended_in(sorted(commits)) if commits else {}
    return [
        Followed(one, _trail(one, anchor, by_name, merges))
        for one, anchor in zip(touching, anchors, strict=True)
    ]


def _trail(
    touching: Touching,
    anchor: Anchored,
    by_name: Mapping[str, list[_Placed]],
    merges: Mapping[str, frozenset[UUID]],
) -> Trail:
    """Follows an anchor over the steps of every name that it may have got."""
    names, fresh = {_last(anchor.path)}, [_last(anchor.path)]
    while fresh:
        renamed = [
            _last(placed.step.file.path)
            for name in fresh
            for placed in by_name.get(name, ())
            if placed.step.file.status == "renamed"
        ]
        fresh = [name for name in dict.fromkeys(renamed) if name not in names]
        names |= set(fresh)
    own = {
        placed.place: placed.step
        for name in names
        for placed in by_name.get(name, ())
        if seen_by(touching, placed.raw, merges)
    }
    return follow(anchor, [own[place] for place in sorted(own)], same_file)


@dataclass(frozen=True)
class _Placed:
    """A step, its place among all, and how it is stored."""

    place: int
    step: Step
    raw: FileStep


def _by_name(steps: Iterable[FileStep]) -> dict[str, list[_Placed]]:
    found: defaultdict[str, list[_Placed]] = defaultdict(list)
    for place, raw in enumerate(steps):
        placed = _Placed(place, step_of(raw), raw)
        for name in {_last(placed.step.file.path), _last(placed.step.file.known_as)}:
            found[name].append(placed)
    return found


def _renames(step: FileStep) -> bool:
    return bool(step.facts.get("status") == "renamed")


async def _settle(
    project: Project, followed: Sequence[Followed], nodes: Mapping[UUID, str]
) -> None:
    """Lets the anchors be where the files are now: a node takes its new name where all that touch
    it go there, else those who go touch another node from now on."""
    by_node: defaultdict[UUID, list[Followed]] = defaultdict(list)
    for one in followed:
        by_node[one.touching.node].append(one)
    for node, those in by_node.items():
        going = [one for one in those if one.trail.left and one.trail.path != nodes[node]]
        goals = {one.trail.path for one in going}
        whole = len(goals) == 1 and len(going) == len(those) > 0
        if whole and await project.rename(node, next(iter(goals)), _between(going)):
            continue
        for goal in sorted(goals):
            along = [one for one in going if one.trail.path == goal]
            memories = [one.touching.memory for one in along]
            await project.rehome(node, goal, memories, _between(along))
    for one in followed:
        for there in one.trail.offspring:
            await project.touch(there.memory, there.path, _meta(there, one.trail.path))


def _between(going: Iterable[Followed]) -> list[str]:
    """The names that files had on the way to the one that they have: what happened to them under
    one of these may be told late."""
    return sorted({path for one in going for path in one.trail.left[1:]})


def _meta(there: Anchored, from_path: str) -> dict[str, Any]:
    """What the edge to a file says into which code has moved."""
    placed = [part for part in there.parts if part.placed]
    return {
        "path": there.path,
        "lines": [[part.first, part.last] for part in placed if not part.name],
        "symbols": [[part.name, part.first, part.last] for part in placed if part.name],
        "since": there.known_at.isoformat(),
        "moved_from": from_path,
    }


async def _spreading(project: Project, direct: Sequence[Source]) -> list[Reached]:
    """Whom the doubts reach within `DEPTH` edges."""
    known: dict[tuple[UUID, UUID, UUID], Reached] = {}
    frontier: Collection[Reached] = sources(direct)
    for _ in range(DEPTH):
        near = sorted({one.memory for one in frontier})
        if not near:
            break
        edges = await project.leaning(near, EDGES_A_MEMORY)
        frontier = onward(list(frontier), edges, known)
    return list(known.values())


def _own(one: Source) -> Reached:
    return Reached(one, one.mark.memory, one.mark.score)


def _row(one: Reached, subjects: Mapping[str, str]) -> dict[str, Any]:
    mark = one.source.mark
    return {
        "memory": str(one.memory),
        "commit": mark.commit,
        "path": mark.path,
        "grade": one.grade.value,
        "score": one.score,
        "change": mark.change,
        "subject": subjects[mark.subject],
        "committed_at": mark.committed_at.isoformat(),
        "node": str(one.source.node),
        "origin": str(mark.memory),
        "via": list(one.via),
        "lines": [list(span) for span in mark.lines] if not one.via else [],
    }


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1].lower()
