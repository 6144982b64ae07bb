"""Renews the leases of all turns that a worker holds, by one statement."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from reverie.domain.core.errors import Unavailable
from reverie.store.engine.turns import ClaimedTurn, LostTurn, TurnTable


@dataclass
class TurnLeases:
    """The leases of this worker, which are renewed while it holds a turn."""

    turns: TurnTable
    lease_seconds: float
    _held: dict[ClaimedTurn, asyncio.Future[None]] = field(default_factory=dict)
    _renewal: asyncio.Task[None] | None = None

    @contextmanager
    def hold(self, turn: ClaimedTurn) -> Iterator[asyncio.Future[None]]:
        """Holds a turn. The future is done when a person stops the turn, or raises `LostTurn`."""
        ended = asyncio.get_running_loop().create_future()
        self._held[turn] = ended
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew_while_held())
        try:
            yield ended
        finally:
            del self._held[turn]
            if not ended.cancel():
                ended.exception()

    async def _renew_while_held(self) -> None:
        while self._held:
            await asyncio.sleep(min(1.0, self.lease_seconds / 3))
            try:
                with suppress(Unavailable):
                    await self._renew()
            except Exception as error:
                for ended in self._held.values():
                    _fail(ended, error)

    async def _renew(self) -> None:
        held = list(self._held.items())
        stops = await self.turns.renew([turn for turn, _ in held])
        for turn, ended in held:
            if turn.id not in stops:
                _fail(ended, LostTurn())
            elif stops[turn.id] and not ended.done():
                ended.set_result(None)


def _fail(ended: asyncio.Future[None], error: Exception) -> None:
    if not ended.done():
        ended.set_exception(error)
