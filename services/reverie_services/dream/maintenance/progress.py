"""Counts and records what a maintenance run did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from reverie.domain.extraction.dream_log import DigestDecision, DreamRunLog
from reverie.store.maintenance.items import MaintenanceScope

MAX_RECORDED_DECISIONS = 500
"""The most decisions of one run that are recorded one by one; all are counted."""


@dataclass
class MaintenanceProgress:
    """The scope of a maintenance run, its counts by outcome, and its record."""

    scope: MaintenanceScope
    record: DreamRunLog = field(default_factory=DreamRunLog)
    counts: dict[str, int] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)
    recorded: int = 0

    def record_decision(
        self, outcome: str, memory_id: UUID, reason: str, kind: str | None = None
    ) -> None:
        """Records one completed action."""
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        if self.recorded < MAX_RECORDED_DECISIONS:
            self.recorded += 1
            self.record.record_decision(DigestDecision(outcome, reason, kind, memory_id))


@dataclass(frozen=True)
class MaintenancePage:
    """The number of memories examined, and the last of them; None: there are no more."""

    examined: int
    last_id: UUID | None

    @classmethod
    def of(cls, ids: Sequence[UUID], page_size: int) -> MaintenancePage:
        """The page of these memories; only a full one can be followed by more."""
        return cls(len(ids), ids[-1] if len(ids) == page_size else None)
