"""Thresholds that make a scope due for a dream, and the log of a dream run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

from reverie.domain.core.errors import InvalidInput

MAX_THRESHOLD_COUNT = 10_000_000
MAX_THRESHOLD_MINUTES = 60.0 * 24 * 365
MAX_REASON_CHARS = 500


@dataclass(frozen=True)
class DreamThresholds:
    """Limits at which a scope dreams, counted over its sessions since the last check.

    Each message of the user begins a segment. `idle_minutes`: silence of a session with undigested
    turns. `interval_minutes`: time since the last dream of a scope with undigested turns.
    """

    segments: int = 12
    chars: int = 12_000
    turns: int = 40
    idle_minutes: float = 15.0
    interval_minutes: float = 60.0

    def with_changes(self, overrides: Mapping[str, float]) -> DreamThresholds:
        """The same with other numbers for some.

        Raises `InvalidInput` naming the first wrong one.
        """
        changed = replace(self, **overrides)  # type: ignore[arg-type]
        for name, number in asdict(changed).items():
            is_integer = name in ("segments", "chars", "turns")
            maximum = MAX_THRESHOLD_COUNT if is_integer else MAX_THRESHOLD_MINUTES
            if number <= 0 or (is_integer and number < 1) or number > maximum:
                raise InvalidInput(name, f"must lie above 0 and be {maximum:g} at most")
        return changed


DEFAULT_THRESHOLDS = DreamThresholds()


@dataclass(frozen=True)
class DigestDecision:
    """The outcome for something that a digest found and that is not a memory it writes.

    `outcome`: such as `dropped`, `refused`, `linked`. `why`: the reason in words, redacted.
    `memory`: the existing memory, if there is one.
    """

    outcome: str
    why: str
    kind: str | None = None
    memory: UUID | None = None
    turns: Sequence[UUID] = ()

    def to_json(self) -> dict[str, Any]:
        """Encodes it in the form of the store."""
        return {
            "outcome": self.outcome,
            "reason": self.why[:MAX_REASON_CHARS],
            "kind": self.kind,
            "memory": str(self.memory) if self.memory else None,
            "turns": [str(turn) for turn in self.turns],
        }


@dataclass
class DreamRunLog:
    """The log of a worker's run, stored with the run and its memories in one transaction.

    `reasons`: why a memory is written, by its new id. `decisions`: all other outcomes. `seconds`:
    by stage. `prompts`: names with versions. `degraded`: why rules replaced a model.
    """

    reasons: dict[UUID, str] = field(default_factory=dict)
    decisions: list[DigestDecision] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    llm_calls: int = 0
    llm_tokens: int = 0
    prompts: set[str] = field(default_factory=set)
    degraded: set[str] = field(default_factory=set)

    def record_reason(self, memory: UUID, why: str) -> None:
        """Records why a memory is written."""
        self.reasons[memory] = why[:MAX_REASON_CHARS]

    def record_decision(self, decision: DigestDecision) -> None:
        """Records the outcome for something that is not written."""
        self.decisions.append(decision)

    def add_time(self, stage: str, seconds: float) -> None:
        """Adds to the time of a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def add_llm_usage(self, calls: int, tokens: int, prompt: str | None = None) -> None:
        """Adds what a language model was asked, failed calls included."""
        self.llm_calls += calls
        self.llm_tokens += tokens
        if prompt:
            self.prompts.add(prompt)

    def flush(self) -> DreamRunLog:
        """Returns the records so far and clears the log."""
        snapshot = replace(self)
        vars(self).update(vars(DreamRunLog()))
        return snapshot

    def to_json(self) -> dict[str, Any]:
        """Encodes it in the form of the store."""
        return {
            "decisions": [decision.to_json() for decision in self.decisions],
            "seconds": {name: round(elapsed, 4) for name, elapsed in self.seconds.items()},
            "llm_calls": self.llm_calls,
            "llm_tokens": self.llm_tokens,
            "prompts": sorted(self.prompts),
            "degraded": sorted(self.degraded),
        }
