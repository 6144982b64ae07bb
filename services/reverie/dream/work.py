"""What one run of tending works on, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from reverie.domain.dreaming import Decision, Record
from reverie.store.tending import Garden

MOST_TOLD = 500
"""Decisions of one run that are told one by one; all are counted."""


@dataclass
class Work:
    """What is tended and what came of it: counts by outcome beside the record of the run."""

    garden: Garden
    record: Record = field(default_factory=Record)
    counts: dict[str, int] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)
    told: int = 0

    def did(self, outcome: str, memory: UUID, why: str, kind: str | None = None) -> None:
        """Notes one thing that was done."""
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        if self.told < MOST_TOLD:
            self.told += 1
            self.record.decided(Decision(outcome, why, kind, memory))


@dataclass(frozen=True)
class Page:
    """How many memories were looked at, and the last of them; None: there are no more."""

    looked: int
    last: UUID | None
