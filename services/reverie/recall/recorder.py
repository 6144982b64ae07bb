"""Traces on their way to the store: they wait in memory, and leave beside the requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from operator import itemgetter

import structlog
from prometheus_client import CollectorRegistry, Counter

from reverie.domain.errors import ReverieError
from reverie.domain.known_secrets import Known, knowing
from reverie.store.traces import StoredTrace, Traces

log = structlog.get_logger("reverie.recall")

WAITING = 200
"""Traces that wait at most: more are dropped and counted."""
PAUSE_SECONDS = 0.5

KnownOf = Callable[[int], Awaitable[Known]]
Tell = Callable[[], StoredTrace]
"""Makes a trace out of a recall, once there is time for it."""


class Recorder:
    """Takes what recalls tell and writes it by the batch, without the secrets of the vault."""

    def __init__(
        self, traces: Traces, known_of: KnownOf, keep: int, registry: CollectorRegistry
    ) -> None:
        """`keep`: traces of a tenant that are kept; 0 keeps none."""
        self._traces, self._known_of, self._keep = traces, known_of, keep
        self._waiting: deque[tuple[int, Tell]] = deque()
        self._some = asyncio.Event()
        self._writing = asyncio.Lock()
        self._dropped = Counter(
            "reverie_recall_traces_dropped",
            "Traces of recalls that were not kept: too many at once, or the store was away.",
            registry=registry,
        )

    def take(self, tenant: int, tell: Tell) -> None:
        """Returns at once; what is too much is dropped."""
        if not self._keep:
            return
        if len(self._waiting) >= WAITING:
            self._dropped.inc()
            return
        self._waiting.append((tenant, tell))
        self._some.set()

    async def keep_writing(self) -> None:
        """Writes for ever; cancelled, it writes what still waits."""
        try:
            while True:
                await self._some.wait()
                await asyncio.sleep(PAUSE_SECONDS)
                await self.flush()
        finally:
            await self.flush()

    async def flush(self) -> None:
        """Writes what waits, and returns once what was under way is written too."""
        async with self._writing:
            batch = list(self._waiting)
            self._waiting.clear()
            self._some.clear()
            batch.sort(key=itemgetter(0))
            for tenant, told in groupby(batch, itemgetter(0)):
                await self._write(tenant, [tell for _, tell in told])

    async def _write(self, tenant: int, told: Sequence[Tell]) -> None:
        try:
            known = await self._known_of(tenant)
            rows = [await _stored(tell, known) for tell in told]
            await self._traces.add(tenant, rows, self._keep)
        except ReverieError as error:
            self._dropped.inc(len(told))
            log.warning("traces_dropped", error=type(error).__name__, traces=len(told))


async def _stored(tell: Tell, known: Known) -> StoredTrace:
    """Lets others go on in between: each takes a millisecond or two."""
    await asyncio.sleep(0)
    with knowing(known, lambda _: False):
        return tell()
