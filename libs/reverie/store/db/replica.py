"""Decides whether a read may go to the streaming replica, by lag and required log position."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import structlog

from reverie.store.db.connection_pool import ConnectionPool
from reverie.store.db.queries import get_query

STATE_TTL_SECONDS: Final = 1.0
"""Seconds for which a replica check is valid for reads that name no position."""
RETRY_SECONDS: Final = 2.0
"""Seconds for which a failed replica is not used."""
POLL_SECONDS: Final = 0.005
QUERY_TIMEOUT_SECONDS: Final = 2.0

log = structlog.get_logger("reverie.store")
_required_position: ContextVar[int] = ContextVar("reverie_needed_position", default=0)


@contextmanager
def require_position(position: int) -> Iterator[None]:
    """Reads inside see at least what was written up to that position of the primary's log."""
    token = _required_position.set(position)
    try:
        yield
    finally:
        _required_position.reset(token)


@dataclass(frozen=True)
class ReplicaOptions:
    """The address of a replica and its limits.

    `wait_timeout`: seconds that a read waits for its position. `max_lag`: seconds that the replica
    may be behind for reads without a position. `on_read`: is called for each read with whether the
    replica served it.
    """

    url: str = field(repr=False)
    wait_timeout: float = 0.5
    max_lag: float = 10.0
    on_read: Callable[[bool], None] = lambda _: None


@dataclass(frozen=True)
class _ReplicaState:
    """Last known replica state: bytes replayed, whether it is readable, check time (seconds,
    monotonic)."""

    replayed: int
    readable: bool
    checked_at: float


class ReadReplica:
    """Connections to a replica, passed over while that is away, cut off, or too far behind."""

    def __init__(self, pool: ConnectionPool, options: ReplicaOptions) -> None:
        self.pool = pool
        self._wait_timeout = options.wait_timeout
        self._max_lag = options.max_lag
        self._on_read = options.on_read
        self._lock = asyncio.Lock()
        self._state = _ReplicaState(0, False, 0.0)
        self._missed = (0, 0.0)

    async def is_usable(self) -> bool:
        """Whether a read may use the replica now. Waits for the read's position, within the
        timeout."""
        usable = await self._check_usable(_required_position.get())
        self._on_read(usable)
        return usable

    async def _check_usable(self, position: int) -> bool:
        requested_at = monotonic()
        state = self._state
        if requested_at - state.checked_at > STATE_TTL_SECONDS or (
            state.readable and state.replayed < position
        ):
            state = await self._refresh_state(requested_at)
        # Who waits for the same in vain, one after another, would wait as often as it has stages.
        missed, missed_at = self._missed
        is_in_vain = missed <= position and requested_at - missed_at < STATE_TTL_SECONDS
        deadline = requested_at + (0.0 if is_in_vain else self._wait_timeout)
        while state.readable and state.replayed < position and monotonic() < deadline:
            await asyncio.sleep(POLL_SECONDS)
            state = await self._refresh_state(monotonic())
        if state.readable and state.replayed < position:
            self._missed = (position, monotonic())
        return state.readable and state.replayed >= position

    def mark_failed(self) -> None:
        """It failed: reads go to the primary for a while."""
        # The check counts from that time: until then nobody checks again.
        self._state = _ReplicaState(0, False, monotonic() + RETRY_SECONDS)

    async def _refresh_state(self, not_before: float) -> _ReplicaState:
        """Returns the state of the replica, checked at `not_before` or later.

        Concurrent callers share one check.
        """
        async with self._lock:
            if self._state.checked_at < not_before:
                try:
                    self._state = await self._query_state()
                # Any replica failure falls back to the primary.
                except Exception as error:
                    log.warning("replica_unavailable", error=type(error).__name__)
                    self.mark_failed()
            return self._state

    async def _query_state(self) -> _ReplicaState:
        checked_at = monotonic()
        row = await self.pool.fetch_row(get_query("replica_state").sql, QUERY_TIMEOUT_SECONDS)
        assert row is not None
        readable = row["follows"] and row["behind"] <= self._max_lag
        if not readable and self._state.readable:
            log.warning("replica_skipped", follows=row["follows"], behind=row["behind"])
        return _ReplicaState(row["replayed"], readable, checked_at)
