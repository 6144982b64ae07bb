"""Impact analysis: how staleness spreads from a changed file over dependent memories.

Each edge passes on a share of the score: most along dependencies, then parts and effects, least
along `learned_in`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from reverie.domain.core.kinds import EdgeKind
from reverie.domain.staleness.grading import LINES_TOUCHED, LINES_UNKNOWN

MAX_DEPTH = 3
MIN_SCORE = 0.05
DIRECT_SCORE = LINES_UNKNOWN[1]

EDGE_SHARES: Mapping[EdgeKind, float] = {
    EdgeKind.DEPENDS_ON: 0.8,
    EdgeKind.PART_OF: 0.6,
    EdgeKind.LED_TO: 0.5,
    EdgeKind.LEARNED_IN: 0.3,
}


@dataclass(frozen=True)
class AffectedMemory:
    """A memory that may turn wrong: how much, and the steps from the file to it."""

    score: float
    path: tuple[str, ...]

    @property
    def grade(self) -> str:
        """`stale` from the score that touched lines give, else `suspect`."""
        return LINES_TOUCHED[0].value if self.score >= LINES_TOUCHED[1] else LINES_UNKNOWN[0].value


@dataclass(frozen=True)
class DependencyEdge:
    """`dependent` leans on `dependency` by an edge;

    `outward`: the edge is stored from near to far.
    """

    dependency: UUID
    dependent: UUID
    kind: EdgeKind
    outward: bool
    weight: float


def spread_impact(
    affected: Mapping[UUID, AffectedMemory], edges: Iterable[DependencyEdge]
) -> dict[UUID, AffectedMemory]:
    """Whom one step more makes doubtful, or more doubtful than `affected` has it, by their best
    way.

    What would fall below `MIN_SCORE` is left out.
    """
    reached: dict[UUID, AffectedMemory] = {}
    for edge in edges:
        score = affected[edge.dependency].score * EDGE_SHARES[edge.kind] * edge.weight
        best = max(_get_score(affected, edge.dependent), _get_score(reached, edge.dependent))
        if score >= MIN_SCORE and score > best:
            reached[edge.dependent] = AffectedMemory(
                score, (*affected[edge.dependency].path, *_render_step(edge))
            )
    return reached


def _get_score(affected: Mapping[UUID, AffectedMemory], memory: UUID) -> float:
    return affected[memory].score if memory in affected else 0.0


def _render_step(edge: DependencyEdge) -> tuple[str, str]:
    arrow = f"-{edge.kind.value}->" if edge.outward else f"<-{edge.kind.value}-"
    return arrow, str(edge.dependent)
