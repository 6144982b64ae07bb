"""Propagation of stale marks along the edges of the memory graph.

`EDGE_SHARES` gives the share of a mark that each kind of edge passes on. Each mark spreads by
itself (`propagate_step`), so that it can be removed with all that it caused. `spread_impact` asks
the same before a change: which memories it would make doubtful.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from reverie.domain.access.scopes import branch_of_scope
from reverie.domain.core.kinds import EdgeKind
from reverie.domain.staleness.grading import LINES_TOUCHED, LINES_UNKNOWN, StaleGrade, StaleMark

MAX_DEPTH = 3
MIN_SCORE = 0.05
"""Below this, doubt is followed no further."""
DIRECT_SCORE = LINES_UNKNOWN[1]
"""The score of a memory that touches a file, if the file changed somewhere."""
MIN_SOURCE_SCORE = LINES_UNKNOWN[1]
"""A mark with a lower score stays with its memory and does not spread."""
MAX_FRONTIER = 5000
"""How many memories of one step are followed further, the most doubtful first."""

EDGE_SHARES: Mapping[EdgeKind, float] = {
    EdgeKind.DEPENDS_ON: 0.8,
    EdgeKind.PART_OF: 0.6,
    EdgeKind.LED_TO: 0.5,
    EdgeKind.LEARNED_IN: 0.3,
}


@dataclass(frozen=True)
class AffectedMemory:
    """A memory that a change would make doubtful: how much, and the steps from the file to it."""

    score: float
    path: tuple[str, ...]

    @property
    def grade(self) -> str:
        """The grade of its score."""
        return _grade_score(self.score).value


@dataclass(frozen=True)
class DependencyEdge:
    """`dependent` relies on `dependency`; `outward`: the edge is stored as one to `dependent`."""

    dependency: UUID
    dependent: UUID
    kind: EdgeKind
    outward: bool
    weight: float

    def render_step(self) -> tuple[str, str]:
        """The arrow of the edge, and the memory that it leads to."""
        arrow = f"-{self.kind.value}->" if self.outward else f"<-{self.kind.value}-"
        return arrow, str(self.dependent)


def spread_impact(
    affected: Mapping[UUID, AffectedMemory], edges: Iterable[DependencyEdge]
) -> dict[UUID, AffectedMemory]:
    """Finds memories that one further step makes doubtful, or more doubtful than `affected`.

    Each has its strongest path. Scores below `MIN_SCORE` are left out.
    """
    reached: dict[UUID, AffectedMemory] = {}
    for edge in edges:
        score = affected[edge.dependency].score * EDGE_SHARES[edge.kind] * edge.weight
        known = (memories.get(edge.dependent) for memories in (affected, reached))
        best = max((memory.score for memory in known if memory), default=0.0)
        if score >= MIN_SCORE and score > best:
            path = (*affected[edge.dependency].path, *edge.render_step())
            reached[edge.dependent] = AffectedMemory(score, path)
    return reached


@dataclass(frozen=True)
class PropagationTarget:
    """A memory that doubt may reach: its scope, and since when it is known or was confirmed."""

    scope: str
    known_at: datetime


@dataclass(frozen=True)
class PropagationSource:
    """A mark on a memory of a scope by a change of the file `node`."""

    mark: StaleMark
    node: UUID
    scope: str


@dataclass(frozen=True)
class PropagatedMark:
    """The path of a doubt from its source: the memories and edges, and the remaining score."""

    source: PropagationSource
    memory: UUID
    score: float
    via: tuple[str, ...] = ()

    @property
    def grade(self) -> StaleGrade:
        """The grade of the source itself, else the grade of the remaining score."""
        return _grade_score(self.score) if self.via else self.source.mark.grade


def select_sources(marks: Iterable[PropagationSource]) -> list[PropagatedMark]:
    """Selects the sources: per memory and file the gravest doubt, the latest of equals."""
    best: dict[tuple[UUID, UUID], PropagationSource] = {}
    for source in marks:
        key = (source.mark.memory, source.node)
        if key not in best or _severity_key(best[key]) <= _severity_key(source):
            best[key] = source
    return [
        PropagatedMark(source, source.mark.memory, source.mark.score)
        for source in best.values()
        if source.mark.score >= MIN_SOURCE_SCORE
    ]


def propagate_step(
    frontier: Sequence[PropagatedMark],
    edges: Iterable[tuple[DependencyEdge, PropagationTarget]],
    reached: dict[tuple[UUID, UUID, UUID], PropagatedMark],
) -> list[PropagatedMark]:
    """Follows one edge from the frontier; updates `reached` and returns new or stronger marks.

    No doubt returns to its origin, leaves its branch, or reaches memories that knew the change.
    """
    by_memory: defaultdict[UUID, list[PropagatedMark]] = defaultdict(list)
    for item in frontier:
        by_memory[item.memory].append(item)
    updated: dict[tuple[UUID, UUID, UUID], PropagatedMark] = {}
    for edge, target in edges:
        for previous in by_memory[edge.dependency]:
            following = _follow_edge(previous, edge, target)
            key = (edge.dependent, previous.source.mark.memory, previous.source.node)
            if following and (key not in reached or reached[key].score < following.score):
                reached[key] = updated[key] = following
    return sorted(updated.values(), key=lambda item: (-item.score, item.memory))[:MAX_FRONTIER]


def _follow_edge(
    previous: PropagatedMark, edge: DependencyEdge, target: PropagationTarget
) -> PropagatedMark | None:
    mark, score = previous.source.mark, previous.score * EDGE_SHARES[edge.kind] * edge.weight
    is_revisit = edge.dependent == mark.memory or str(edge.dependent) in previous.via
    knew_change = target.known_at >= mark.committed_at
    if (
        is_revisit
        or knew_change
        or score < MIN_SCORE
        or branch_of_scope(target.scope) != branch_of_scope(previous.source.scope)
    ):
        return None
    via = (*previous.via, *edge.render_step())
    return PropagatedMark(previous.source, edge.dependent, score, via)


def _grade_score(score: float) -> StaleGrade:
    """`stale` from the score that touched lines give, else `suspect`."""
    return LINES_TOUCHED[0] if score >= LINES_TOUCHED[1] else LINES_UNKNOWN[0]


def _severity_key(source: PropagationSource) -> tuple[float, datetime]:
    return source.mark.score, source.mark.committed_at
