"""How a mark on a memory spreads over the memories that lean on it, edge by edge. Pure.

Shares are those of `impact`: what is asked before a change and what is marked after it agree. Each
mark spreads by itself, so that it can be taken back with all that it caused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from reverie.domain.impact import LEAST, SHARE, Affected, Leaning
from reverie.domain.scopes import branch_view
from reverie.domain.staleness import LINES_UNKNOWN, Grade, Mark

WORTH = LINES_UNKNOWN[1]
"""A doubt below this stays with the memory that it is about."""
MOST_SPREAD = 5000
"""Of what one step reaches, so many of the most doubtful are followed further."""


@dataclass(frozen=True)
class Lasting:
    """A memory that doubt may reach: its scope, and since when it is known or was confirmed."""

    scope: str
    known_at: datetime


@dataclass(frozen=True)
class Source:
    """A mark on a memory of a scope by a change of the file `node`."""

    mark: Mark
    node: UUID
    scope: str


@dataclass(frozen=True)
class Reached:
    """Where the doubt of a source came to: by which memories and arrows, and how much is left."""

    source: Source
    memory: UUID
    score: float
    via: tuple[str, ...] = ()

    @property
    def grade(self) -> Grade:
        """Of the source itself as it is marked, else by what is left of its score."""
        return Grade(Affected(self.score, ()).grade) if self.via else self.source.mark.grade


def sources(marks: Iterable[Source]) -> list[Reached]:
    """What spreads: of each memory and file the gravest doubt, the latest of equals."""
    best: dict[tuple[UUID, UUID], Source] = {}
    for one in marks:
        key = (one.mark.memory, one.node)
        if key not in best or _weight(best[key]) <= _weight(one):
            best[key] = one
    return [Reached(one, one.mark.memory, one.mark.score) for one in best.values() if _spreads(one)]


def onward(
    frontier: Sequence[Reached],
    edges: Iterable[tuple[Leaning, Lasting]],
    known: dict[tuple[UUID, UUID, UUID], Reached],
) -> list[Reached]:
    """One edge on from the frontier, what is new or stronger than `known` has it, which it updates.

    No doubt comes back to where it came from, leaves its branch, or reaches who knew the change.
    """
    by_memory: defaultdict[UUID, list[Reached]] = defaultdict(list)
    for one in frontier:
        by_memory[one.memory].append(one)
    fresh: dict[tuple[UUID, UUID, UUID], Reached] = {}
    for edge, other in edges:
        for near in by_memory[edge.near]:
            far = _stepped(near, edge, other)
            key = (edge.far, near.source.mark.memory, near.source.node)
            if far and (key not in known or known[key].score < far.score):
                known[key] = fresh[key] = far
    return sorted(fresh.values(), key=lambda one: (-one.score, one.memory))[:MOST_SPREAD]


def _stepped(near: Reached, edge: Leaning, other: Lasting) -> Reached | None:
    mark, score = near.source.mark, near.score * SHARE[edge.kind] * edge.weight
    been = edge.far == mark.memory or str(edge.far) in near.via
    knew = other.known_at >= mark.committed_at
    if been or knew or score < LEAST or branch_view(other.scope) != branch_view(near.source.scope):
        return None
    arrow = f"-{edge.kind.value}->" if edge.outward else f"<-{edge.kind.value}-"
    return Reached(near.source, edge.far, score, (*near.via, arrow, str(edge.far)))


def _spreads(one: Source) -> bool:
    return one.mark.score >= WORTH


def _weight(one: Source) -> tuple[float, datetime]:
    return one.mark.score, one.mark.committed_at
