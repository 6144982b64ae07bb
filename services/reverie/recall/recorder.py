"""Traces on their way to the store: they wait in memory, and leave beside the requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from operator import itemgetter

import structlog
from prometheus_client import CollectorRegistry, Counter

from reverie.domain.errors import ReverieError
from reverie.domain.known_secrets import Known, knowing
from reverie.runtime.later import Later
from reverie.store.traces import StoredTrace, Traces

log = structlog.get_logger("reverie.recall")

WAITING = 200
"""Traces that wait at most: more are dropped and counted."""

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
        self._later = Later(self._write_all, WAITING)
        self.keep_writing, self.flush = self._later.keep_writing, self._later.flush
        self._dropped = Counter(
            "reverie_recall_traces_dropped",
            "Traces of recalls that were not kept: too many at once, or the store was away.",
            registry=registry,
        )

    def take(self, tenant: int, tell: Tell) -> None:
        """Returns at once; what is too much is dropped."""
        if self._keep and not self._later.take((tenant, tell)):
            self._dropped.inc()

    async def _write_all(self, batch: list[tuple[int, Tell]]) -> None:
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
