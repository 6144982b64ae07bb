"""When a scope dreams, and what a dream notes of itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

from reverie.domain.errors import Invalid

MOST_COUNT = 10_000_000
MOST_MINUTES = 60.0 * 24 * 365
WHY_CHARS = 500


@dataclass(frozen=True)
class Limits:
    """What makes a scope dream: so much of its sessions that came since the last look.

    A segment is begun by each message of the user. `idle_minutes`: silence of a session that has
    something undigested; `every_minutes`: time since the last dream of a scope that has.
    """

    segments: int = 12
    chars: int = 12_000
    turns: int = 40
    idle_minutes: float = 15.0
    every_minutes: float = 60.0

    def changed(self, asked: Mapping[str, float]) -> Limits:
        """The same with other numbers for some. Raises `Invalid` naming the first wrong one."""
        made = replace(self, **asked)  # type: ignore[arg-type]
        for name, number in asdict(made).items():
            whole = name in ("segments", "chars", "turns")
            most = MOST_COUNT if whole else MOST_MINUTES
            if number <= 0 or (whole and number < 1) or number > most:
                raise Invalid(name, f"must lie above 0 and be {most:g} at most")
        return made


DEFAULT = Limits()


@dataclass(frozen=True)
class Decision:
    """What became of something that a digest came upon, other than a memory that it writes.

    `outcome`: as `dropped`, `refused`, `linked`; `why`: in words, redacted; `memory`: the one that
    stands, where there is one.
    """

    outcome: str
    why: str
    kind: str | None = None
    memory: UUID | None = None
    turns: Sequence[UUID] = ()

    def fields(self) -> dict[str, Any]:
        """As the store takes it."""
        return {
            "outcome": self.outcome,
            "why": self.why[:WHY_CHARS],
            "kind": self.kind,
            "memory": str(self.memory) if self.memory else None,
            "turns": [str(turn) for turn in self.turns],
        }


@dataclass
class Record:
    """What a worker notes beside the memories that it writes; kept with the run in one transaction.

    `reasons`: why a memory is written, by its new id; `decisions`: all else; `seconds`: by stage;
    `prompts`: names with versions; `degraded`: why the rules stood in for a model.
    """

    reasons: dict[UUID, str] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    llm_calls: int = 0
    llm_tokens: int = 0
    prompts: set[str] = field(default_factory=set)
    degraded: set[str] = field(default_factory=set)

    def because(self, memory: UUID, why: str) -> None:
        """Says why a memory is written."""
        self.reasons[memory] = why[:WHY_CHARS]

    def decided(self, decision: Decision) -> None:
        """Notes what became of something that is not written."""
        self.decisions.append(decision)

    def spent(self, stage: str, seconds: float) -> None:
        """Adds to the time of a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def asked(self, calls: int, tokens: int, prompt: str | None = None) -> None:
        """Adds what a language model was asked, failed calls included."""
        self.llm_calls += calls
        self.llm_tokens += tokens
        if prompt:
            self.prompts.add(prompt)

    def flush(self) -> Record:
        """What was noted so far, to be kept; nothing of it stays."""
        noted = replace(self)
        vars(self).update(vars(Record()))
        return noted

    def fields(self) -> dict[str, Any]:
        """As the store takes it."""
        return {
            "decisions": [one.fields() for one in self.decisions],
            "seconds": {name: round(took, 4) for name, took in self.seconds.items()},
            "llm_calls": self.llm_calls,
            "llm_tokens": self.llm_tokens,
            "prompts": sorted(self.prompts),
            "degraded": sorted(self.degraded),
        }
