"""The graph as it is read: around a memory, behind a file, in numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from uuid import UUID

import asyncpg

from reverie.domain.access import Principal
from reverie.domain.anchors import same_file
from reverie.domain.components import component_sizes
from reverie.domain.edges import EdgeKind
from reverie.domain.errors import NotFound
from reverie.domain.impact import DEPTH, DIRECT, Affected, Leaning, spread
from reverie.domain.kinds import ANCHORS
from reverie.store.database import Database, Tenant

EDGES_A_NODE = 20
MOST_REACHED = 1000
COME_MEANWHILE = 100
"""How many more are ranked than a page needs, for those that came before its place meanwhile."""


@dataclass(frozen=True)
class Around:
    """How far to look: edges away, edges a memory, memories in all, seconds in all."""

    depth: int
    fan_out: int
    limit: int
    statuses: Sequence[str]
    as_of: datetime | None = None
    seconds: float = 2.0


@dataclass
class Picture:
    """What was found: the depth of each memory, and what cut the walk short."""

    depths: dict[UUID, int]
    nodes: list[asyncpg.Record] = field(default_factory=list)
    edges: list[asyncpg.Record] = field(default_factory=list)
    follows: list[asyncpg.Record] = field(default_factory=list)
    cut_by: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Place:
    """Where a page of a ranking ends: after how many, and after whom."""

    count: int = 0
    last: tuple[float, UUID] | None = None

    def within(self, ranked: Sequence[UUID], affected: Mapping[UUID, Affected]) -> int:
        """How many stand before it now, when some may have come and gone."""
        if self.last is None:
            return self.count
        score, one = self.last
        last = (-score, one)
        return bisect_right(ranked, last, key=lambda other: (-affected[other].score, other))

    def after(self, shown: Sequence[UUID], start: int, affected: Mapping[UUID, Affected]) -> Place:
        """Where a page that began after `start` ends."""
        last = (affected[shown[-1]].score, shown[-1]) if shown else self.last
        return Place(start + len(shown), last)


START = Place()


@dataclass(frozen=True)
class Behind:
    """What anchors bear: those meant that are touched, whom a change affects, and the rows of a
    page of them. `until`: where that ends."""

    names: list[str]
    affected: Mapping[UUID, Affected]
    rows: list[asyncpg.Record]
    truncated: bool
    until: Place = START


@dataclass(frozen=True)
class Numbers:
    """A graph in numbers; `nodes` by (kind, status), `sizes` of components but of lone nodes."""

    nodes: Mapping[tuple[str, str], int]
    edges: Mapping[str, int]
    sizes: Sequence[int]

    @property
    def total(self) -> int:
        """All nodes."""
        return sum(self.nodes.values())

    @property
    def memories(self) -> int:
        """The nodes that are no anchors."""
        return sum(many for (kind, _), many in self.nodes.items() if kind not in ANCHORS)

    @property
    def orphans(self) -> int:
        """The nodes without an edge."""
        return self.total - sum(self.sizes)


class Graph:
    """The graphs of all tenants, each call within one and within what the key may read."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def around(self, who: Principal, root: UUID, ask: Around) -> Picture:
        """What lies around a memory. Raises `NotFound` where the key may not read it.

        Every bound of `ask` holds; what was found until one cut in is answered.
        """
        picture = Picture({root: 0})
        reads = list(who.reads)
        async with self._db.looking(who.tenant) as tenant:
            if not await _read(tenant, ask, "graph_nodes", [root], reads):
                raise NotFound("memory", str(root))
        await self._walk(who, picture, ask)
        ids, most = list(picture.depths), ask.limit * EDGES_A_NODE
        async with self._db.looking(who.tenant) as tenant:
            picture.nodes = await _read(tenant, ask, "graph_nodes", ids, reads)
            edges = await _read(tenant, ask, "graph_edges", ids, most + 1)
            picture.follows = await _read(tenant, ask, "graph_follows", ids, reads, ask.statuses)
        picture.edges = edges[:most]
        if len(edges) > most:
            picture.cut_by.add("edges")
        return picture

    async def _walk(self, who: Principal, picture: Picture, ask: Around) -> None:
        """Breadth first, each memory once, until nothing is new or a bound is met."""
        until = monotonic() + ask.seconds
        frontier = list(picture.depths)
        for depth in range(1, ask.depth + 1):
            try:
                found = await self._step(who, frontier, ask, until)
            except asyncpg.QueryCanceledError:
                picture.cut_by.add("time")
                return
            frontier = _grown(picture, found, depth, ask)
            if not frontier:
                return

    async def _step(
        self, who: Principal, frontier: Sequence[UUID], ask: Around, until: float
    ) -> list[asyncpg.Record]:
        left = max(1, int((until - monotonic()) * 1000))
        async with self._db.looking(who.tenant) as tenant:
            await tenant.value("graph_seconds", str(left))
            most = ask.fan_out + 1
            return await _read(
                tenant, ask, "graph_steps", list(frontier), list(who.reads), most, ask.statuses
            )

    async def behind(
        self, who: Principal, path: str, project: str | None, limit: int, after: Place = START
    ) -> Behind:
        """Whom a change of a file would make doubtful, the most doubtful first, after a place."""
        name = path.rsplit("/", 1)[-1].lower()
        async with self._db.looking(who.tenant) as tenant:
            anchors = await tenant.rows("impact_anchors", name, project)
            files = {row["node"]: row["path"] for row in anchors if same_file(row["named"], path)}
            return await _behind(tenant, who, files, limit, after)

    async def behind_entity(
        self,
        who: Principal,
        names: Sequence[str],
        project: str | None,
        limit: int,
        after: Place = START,
    ) -> Behind:
        """The same of an entity that goes by any of `names`."""
        keys = [f"entity:{name}" for name in names]
        async with self._db.looking(who.tenant) as tenant:
            found = await tenant.rows("impact_entities", keys, list(who.reads), project)
            nodes = {row["node"]: row["path"] for row in found}
            return await _behind(tenant, who, nodes, limit, after)

    async def numbers(self, who: Principal, within: Sequence[str] | None) -> Numbers:
        """Counts of all that may be read, or of it what the patterns `within` cover."""
        scopes = (list(who.reads), list(within) if within is not None else None)
        async with self._db.looking(who.tenant) as tenant:
            counts = await tenant.rows("graph_counts", *scopes)
            links = await tenant.rows("graph_links", *scopes)
            follows = await tenant.value("graph_backbone", *scopes)
        kinds = Counter(row["kind"] for row in links)
        if follows:
            kinds[EdgeKind.FOLLOWS.value] = follows
        nodes = {(row["kind"], row["status"]): row["many"] for row in counts}
        sizes = component_sizes((row["src"], row["dst"]) for row in links)
        return Numbers(nodes, dict(sorted(kinds.items())), sizes)


async def _read(tenant: Tenant, ask: Around, name: str, *args: object) -> list[asyncpg.Record]:
    """The rows of a query, or of its twin that reads as of a moment."""
    if ask.as_of is None:
        return await tenant.rows(name, *args)
    return await tenant.rows(f"{name}_then", *args, ask.as_of)


def _grown(
    picture: Picture, found: Sequence[asyncpg.Record], depth: int, ask: Around
) -> list[UUID]:
    """Takes what a step found into the picture; answers the memories that are new in it."""
    taken: Counter[UUID] = Counter()
    fresh: list[UUID] = []
    for row in found:
        near, far = row["near"], row["far"]
        taken[near] += 1
        if taken[near] > ask.fan_out:
            picture.cut_by.add("fan_out")
        elif far not in picture.depths:
            if len(picture.depths) >= ask.limit:
                picture.cut_by.add("nodes")
                break
            picture.depths[far] = depth
            fresh.append(far)
    return fresh


async def _behind(
    tenant: Tenant, who: Principal, anchors: Mapping[UUID, str], limit: int, after: Place
) -> Behind:
    """Whom a change of these anchors, named, would make doubtful.

    Where more touch them than are asked for, nobody else comes into the answer: whoever leans on
    those is less doubtful than they are.
    """
    reads = list(who.reads)
    most = after.count + limit + (COME_MEANWHILE if after.count else 0)
    touched = await tenant.rows("impact_touched", list(anchors), reads)
    found = await tenant.rows("impact_touching", list(anchors), reads, most + 1)
    affected = {
        row["id"]: Affected(
            DIRECT, (anchors[row["node"]], f"<-{EdgeKind.TOUCHES.value}-", str(row["id"]))
        )
        for row in found
    }
    if len(found) <= most:
        affected = await _affected(tenant, who, affected)
    best = _best(affected)
    start = after.within(best, affected)
    shown = best[start : start + limit]
    rows = await tenant.rows("impact_shown", shown, reads)
    order = {one: place for place, one in enumerate(shown)}
    rows.sort(key=lambda row: order[row["id"]])
    seen = sorted({anchors[row["node"]] for row in touched})
    more = len(best) > start + limit or len(found) > most
    return Behind(seen, affected, rows, more, after.after(shown, start, affected))


def _best(affected: Mapping[UUID, Affected]) -> list[UUID]:
    """The most doubtful first."""
    return sorted(affected, key=lambda one: (-affected[one].score, one))


async def _affected(
    tenant: Tenant, who: Principal, touching: Mapping[UUID, Affected]
) -> dict[UUID, Affected]:
    """Those that touch an anchor, and whom doubt reaches from them within `DEPTH` edges.

    Of those that an edge reaches, the `MOST_REACHED` most doubtful are followed further.
    """
    affected = dict(touching)
    reached = dict(affected)
    for _ in range(DEPTH):
        near = _best(reached)[:MOST_REACHED]
        found = await tenant.rows("impact_leaning", near, list(who.reads), EDGES_A_NODE)
        edges = [
            Leaning(r["near"], r["far"], EdgeKind(r["kind"]), r["outward"], r["weight"])
            for r in found
        ]
        reached = spread(affected, edges)
        if not reached:
            break
        affected |= reached
    return affected
