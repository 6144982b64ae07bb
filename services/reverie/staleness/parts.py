"""The parts that staleness is wired from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from reverie.bus.port import Bus
from reverie.domain.known_secrets import Known
from reverie.runtime.idempotency import IdempotencyStore
from reverie.staleness.settings import StalenessSettings
from reverie.store.changes import Changes
from reverie.store.doubts import Doubts
from reverie.store.hooks import Hooks
from reverie.store.outbox import OutboxTable


@dataclass(frozen=True)
class Parts:
    """Everything that a door of staleness may use."""

    settings: StalenessSettings
    bus: Bus
    changes: Changes
    doubts: Doubts
    hooks: Hooks
    outbox: OutboxTable
    idempotency: IdempotencyStore
    known_of: Callable[[int], Awaitable[Known]]
