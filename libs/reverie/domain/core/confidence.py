"""Confidence of a memory at a given time, computed from its age and its use.

    current = max(floor, (base + boost) * 0.5 ** (days / half-life)), at most 1

`base` is set by writers, `boost` by use. `days` counts from the latest of creation, confirmation
and use. Superseded memories age twice as fast; unlinked ones 1.5 times as fast after 30 days.
Pinned memories and kinds that do not decay keep their confidence; without decay, all do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from reverie.domain.core.kinds import KIND_POLICIES, Kind, parse_kind
from reverie.domain.core.memory import MemoryStatus, MemoryUsage

FLOOR = 0.1
BOOST = 0.2
NEIGHBOUR_SHARE = 0.25
"""What the neighbours of a used memory gain, as a share of its boost."""
SUPERSEDED_RATE = 2.0
ORPHAN_RATE = 1.5
ORPHAN_AFTER_DAYS = 30.0

HalfLives = Mapping[Kind, float]
HALF_LIVES: HalfLives = {kind: how.half_life_days for kind, how in KIND_POLICIES.items()}


def parse_half_lives(overrides: Mapping[str, float]) -> HalfLives:
    """Half-lives in days by kind, from overrides by kind or alias; `default` sets all others.

    Raises `InvalidInput` for a name that is no kind.
    """
    default_days = overrides.get("default")
    base = HALF_LIVES if default_days is None else dict.fromkeys(Kind, default_days)
    by_kind = {parse_kind(name): days for name, days in overrides.items() if name != "default"}
    return {**base, **by_kind}


@dataclass(frozen=True)
class DecayPolicy:
    """How confidence falls with time: half-lives in days by kind, and the least that is left."""

    half_lives: HalfLives = field(default_factory=lambda: HALF_LIVES)
    floor: float = FLOOR
    enabled: bool = True

    def is_lasting(self, kind: Kind) -> bool:
        """Whether time takes nothing from memories of a kind."""
        return not (self.enabled and KIND_POLICIES[kind].decays)


DEFAULT_DECAY = DecayPolicy()


class DecayingMemory(Protocol):
    """The fields that the confidence of a memory is computed from."""

    @property
    def kind(self) -> Kind: ...
    @property
    def status(self) -> MemoryStatus: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def confidence(self) -> float: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def confirmed_at(self) -> datetime | None: ...
    @property
    def linked(self) -> bool: ...
    @property
    def use(self) -> MemoryUsage: ...


def current_confidence(
    memory: DecayingMemory,
    now: datetime,
    decay: DecayPolicy = DEFAULT_DECAY,
    use: MemoryUsage | None = None,
) -> float:
    """Computes the confidence at `now`, 0..1. `use` defaults to `memory.use`."""
    usage = memory.use if use is None else use
    undecayed = min(1.0, memory.confidence + usage.boost)
    return max(min(decay.floor, undecayed), undecayed * _decay_factor(memory, now, decay, usage))


def has_decayed(memory: DecayingMemory, now: datetime, decay: DecayPolicy = DEFAULT_DECAY) -> bool:
    """Whether time took a memory down to the floor. What stays never has."""
    undecayed = min(1.0, memory.confidence + memory.use.boost)
    return (
        not is_permanent(memory, decay)
        and undecayed * _decay_factor(memory, now, decay, memory.use) <= decay.floor
    )


def is_permanent(memory: DecayingMemory, decay: DecayPolicy = DEFAULT_DECAY) -> bool:
    """Whether time takes nothing from it."""
    return memory.pinned or decay.is_lasting(memory.kind)


def _decay_factor(
    memory: DecayingMemory, now: datetime, decay: DecayPolicy, use: MemoryUsage
) -> float:
    """The share that is left after the days since the memory was last known."""
    if is_permanent(memory, decay):
        return 1.0
    last_confirmed = memory.created_at
    for moment in (memory.confirmed_at, use.last):
        if moment is not None and moment > last_confirmed:
            last_confirmed = moment
    days = max((now - last_confirmed).total_seconds(), 0.0) / 86_400
    if not memory.linked:
        days += (ORPHAN_RATE - 1) * max(days - ORPHAN_AFTER_DAYS, 0.0)
    if memory.status is MemoryStatus.SUPERSEDED:
        days *= SUPERSEDED_RATE
    return float(0.5 ** (days / decay.half_lives[memory.kind]))
