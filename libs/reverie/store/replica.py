"""A streaming replica that reads go to, and what a read must have seen of the primary's log.

A position is a place in the log of the primary, as Postgres writes it (`0/16B3748`). Whoever is
told one after a write and names it in a read sees that write, whichever server answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import structlog

from reverie.store.hand import Hand
from reverie.store.queries import query

LOOK_SECONDS: Final = 1.0
"""How long what was seen of the replica holds for reads that name no position."""
AWAY_SECONDS: Final = 2.0
"""How long a replica that failed is left alone."""
PAUSE_SECONDS: Final = 0.005
ANSWER_SECONDS: Final = 2.0

log = structlog.get_logger("reverie.store")
_needed: ContextVar[int] = ContextVar("reverie_needed_position", default=0)


@contextmanager
def seeing(position: int) -> Iterator[None]:
    """Reads inside see at least what was written up to that position of the primary's log."""
    before = _needed.set(position)
    try:
        yield
    finally:
        _needed.reset(before)


@dataclass(frozen=True)
class ReplicaSpec:
    """Where a replica is. `patience`: seconds that a read waits for what it must see; `lag`:
    seconds that the replica may be behind for reads that name nothing; `told`: is told of each
    read whether the replica had it."""

    url: str = field(repr=False)
    patience: float = 0.5
    lag: float = 10.0
    told: Callable[[bool], None] = lambda _: None


@dataclass(frozen=True)
class _State:
    """What a replica said: bytes replayed, whether it may be read, when (seconds, monotonic)."""

    replayed: int
    sound: bool
    at: float


class Replica:
    """Connections to a replica, passed over while that is away, cut off, or too far behind."""

    def __init__(self, hand: Hand, spec: ReplicaSpec) -> None:
        self.hand = hand
        self._patience = spec.patience
        self._lag = spec.lag
        self._told = spec.told
        self._looking = asyncio.Lock()
        self._state = _State(0, False, 0.0)
        self._missed = (0, 0.0)

    async def usable(self) -> bool:
        """Whether a read may go there now. Waits for what it must see, as long as it may."""
        usable = await self._usable(_needed.get())
        self._told(usable)
        return usable

    async def _usable(self, position: int) -> bool:
        asked = monotonic()
        state = self._state
        if asked - state.at > LOOK_SECONDS or (state.sound and state.replayed < position):
            state = await self._look(asked)
        # Who waits for the same in vain, one after another, would wait as often as it has stages.
        until = asked if self._missed_at(asked, position) else asked + self._patience
        while state.sound and state.replayed < position and monotonic() < until:
            await asyncio.sleep(PAUSE_SECONDS)
            state = await self._look(monotonic())
        if state.sound and state.replayed < position:
            self._missed = (position, monotonic())
        return state.sound and state.replayed >= position

    def _missed_at(self, now: float, position: int) -> bool:
        missed, at = self._missed
        return missed <= position and now - at < LOOK_SECONDS

    def gone(self) -> None:
        """It failed: reads go to the primary for a while."""
        # As if it had been looked at then: until that time nobody looks again.
        self._state = _State(0, False, monotonic() + AWAY_SECONDS)

    async def _look(self, asked: float) -> _State:
        """How the replica is, seen at `asked` or later; one look serves all who wait for it."""
        async with self._looking:
            if self._state.at < asked:
                try:
                    self._state = await self._ask()
                # Whatever ails a replica, the primary has the answer.
                except Exception as error:
                    log.warning("replica_away", error=type(error).__name__)
                    self.gone()
            return self._state

    async def _ask(self) -> _State:
        at = monotonic()
        row = await self.hand.row(query("replica_state").sql, ANSWER_SECONDS)
        assert row is not None
        sound = row["follows"] and row["behind"] <= self._lag
        if not sound and self._state.sound:
            log.warning("replica_passed_over", follows=row["follows"], behind=row["behind"])
        return _State(row["replayed"], sound, at)
