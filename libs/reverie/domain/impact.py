"""How doubt spreads from a file that changes over the memories that lean on one another. Pure.

A memory that touches the file may be wrong as the change itself makes it (`staleness`). Another
that leans on it may be wrong too, by a share for every edge between: what depends on it most,
then its parts and what it led to, least what was only learned in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from reverie.domain.edges import EdgeKind
from reverie.domain.staleness import LINES_UNKNOWN, TOUCHED

DEPTH = 3
LEAST = 0.05
DIRECT = LINES_UNKNOWN[1]

SHARE: Mapping[EdgeKind, float] = {
    EdgeKind.DEPENDS_ON: 0.8,
    EdgeKind.PART_OF: 0.6,
    EdgeKind.LED_TO: 0.5,
    EdgeKind.LEARNED_IN: 0.3,
}


@dataclass(frozen=True)
class Affected:
    """A memory that may turn wrong: how much, and the steps from the file to it."""

    score: float
    path: tuple[str, ...]

    @property
    def grade(self) -> str:
        """`stale` from the score that touched lines give, else `suspect`."""
        return TOUCHED[0].value if self.score >= TOUCHED[1] else LINES_UNKNOWN[0].value


@dataclass(frozen=True)
class Leaning:
    """`far` leans on `near` by an edge; `outward`: the edge is stored from near to far."""

    near: UUID
    far: UUID
    kind: EdgeKind
    outward: bool
    weight: float


def spread(found: Mapping[UUID, Affected], edges: Iterable[Leaning]) -> dict[UUID, Affected]:
    """Whom one step more makes doubtful, or more doubtful than `found` has it, by their best way.

    What would fall below `LEAST` is left out.
    """
    reached: dict[UUID, Affected] = {}
    for edge in edges:
        score = found[edge.near].score * SHARE[edge.kind] * edge.weight
        best = max(_score(found, edge.far), _score(reached, edge.far))
        if score >= LEAST and score > best:
            reached[edge.far] = Affected(score, (*found[edge.near].path, *_step(edge)))
    return reached


def _score(known: Mapping[UUID, Affected], memory: UUID) -> float:
    return known[memory].score if memory in known else 0.0


def _step(edge: Leaning) -> tuple[str, str]:
    arrow = f"-{edge.kind.value}->" if edge.outward else f"<-{edge.kind.value}-"
    return arrow, str(edge.far)
