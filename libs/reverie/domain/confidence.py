"""How sure a memory is now: the one place that computes it, from timestamps, when it is read. Pure.

    present = max(floor, (base + boost) * 0.5 ** (days / half-life)), at most 1

`base` is what writers said, `boost` what readers added. `days` run from the last of: made,
confirmed (said again, content changed, made surer, restored), used by a recall. Marks of
staleness, renames, links and supersedes do not make a memory young again. A superseded
memory's days count double; those of an orphan (no edge but to files and sessions) one and a half
times once it is 30 days old, for until then it may still be linked. What is pinned and kinds that
stay lose nothing. The floor, 0.1, lifts nothing above its base.

The curve is the exponential one of forgetting (Ebbinghaus, 1885), told by its half-life: after two
of them a quarter is left, of an orphan too while it is young. The rates and the floor are chosen:
a memory as sure as by default, 0.8, falls to the floor after three half-lives; after one and a
half once it is superseded; and an orphan of a half-life of 30 days on its 70th day, not its 90th.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from reverie.domain.kinds import TREATMENT, Kind, parse_kind
from reverie.domain.memory import Status, Use

FLOOR = 0.1
BOOST = 0.2
NEAR_BOOST = 0.05
SUPERSEDED_RATE = 2.0
ORPHAN_RATE = 1.5
ORPHAN_AFTER_DAYS = 30.0

HalfLives = Mapping[Kind, float]
HALF_LIVES: HalfLives = {kind: how.half_life_days for kind, how in TREATMENT.items()}


def half_lives(chosen: Mapping[str, float]) -> HalfLives:
    """Half-lives in days by kind: those chosen, by kind or alias; `default` is for the others.

    Raises `Invalid` on a name that is no kind.
    """
    rest = chosen.get("default")
    base = HALF_LIVES if rest is None else dict.fromkeys(Kind, rest)
    named = {parse_kind(name): days for name, days in chosen.items() if name != "default"}
    return {**base, **named}


class Ageing(Protocol):
    """What the confidence of a memory is reckoned from."""

    @property
    def kind(self) -> Kind: ...
    @property
    def status(self) -> Status: ...
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
    def use(self) -> Use: ...


def present(
    memory: Ageing, now: datetime, lives: HalfLives = HALF_LIVES, use: Use | None = None
) -> float:
    """The confidence at `now`, 0..1. `use` is by whom it was used, by default as it stands."""
    used = memory.use if use is None else use
    full = min(1.0, memory.confidence + used.boost)
    return max(min(FLOOR, full), full * _left(memory, now, lives, used))


def has_faded(memory: Ageing, now: datetime, lives: HalfLives = HALF_LIVES) -> bool:
    """Whether time took a memory down to the floor. What stays never has."""
    full = min(1.0, memory.confidence + memory.use.boost)
    return not stays(memory) and full * _left(memory, now, lives, memory.use) <= FLOOR


def stays(memory: Ageing) -> bool:
    """Whether time takes nothing from it."""
    return memory.pinned or not TREATMENT[memory.kind].decays


def _left(memory: Ageing, now: datetime, lives: HalfLives, use: Use) -> float:
    if stays(memory):
        return 1.0
    return float(0.5 ** (_days(memory, now, use) / lives[memory.kind]))


def _days(memory: Ageing, now: datetime, use: Use) -> float:
    """Days since the memory was last known, as they count for it."""
    known = memory.created_at
    for moment in (memory.confirmed_at, use.last):
        if moment is not None and moment > known:
            known = moment
    days = max((now - known).total_seconds(), 0.0) / 86_400
    if not memory.linked:
        days += (ORPHAN_RATE - 1) * max(days - ORPHAN_AFTER_DAYS, 0.0)
    return days * (SUPERSEDED_RATE if memory.status is Status.SUPERSEDED else 1.0)
