"""Polled Prometheus gauges of ingest: outbox, bus lag, dream queue, and backlog."""

from __future__ import annotations

from functools import partial

from reverie.bus.streams import CONSUMERS, ConsumerSpec
from reverie.contracts.events import DEAD_LETTER_STREAM
from reverie.runtime.observability.metrics import PolledGauge
from reverie_services.ingest.dependencies import IngestDependencies


def build_gauges(deps: IngestDependencies) -> list[PolledGauge]:
    """How far behind the outbox, the bus, the slow path and dreams are; there may be no dream
    worker to tell of its queue."""

    async def waiting() -> float:
        return float((await deps.outbox.age())[0])

    async def oldest() -> float:
        return (await deps.outbox.age())[1]

    async def behind() -> float:
        return float((await deps.leader_lock.count_backlog()).memories)

    async def queued() -> float:
        return float((await deps.dreams.load_queue_lengths()).queued)

    async def running() -> float:
        return float((await deps.dreams.load_queue_lengths()).running)

    async def asked() -> float:
        return (await deps.dreams.load_queue_lengths()).oldest_seconds

    async def dead() -> float:
        return float(await deps.bus.count_messages(DEAD_LETTER_STREAM))

    return [
        *(
            PolledGauge(
                "reverie_bus_lag",
                "Messages that a consumer has not acknowledged: waiting and in work.",
                partial(_read_lag, deps, spec),
                {"consumer": spec.name},
            )
            for spec in CONSUMERS
        ),
        PolledGauge("reverie_dead_letters", "Messages among the dead letters.", dead),
        PolledGauge("reverie_outbox_waiting", "Events not yet on the bus.", waiting),
        PolledGauge("reverie_outbox_oldest_seconds", "Age of the oldest of them.", oldest),
        PolledGauge("reverie_dreams_queued", "Scopes that wait for a worker.", queued),
        PolledGauge("reverie_dreams_running", "Scopes that a worker digests.", running),
        PolledGauge("reverie_dreams_oldest_seconds", "Age of the oldest request.", asked),
        PolledGauge(
            "reverie_memories_unenriched", "Memories the slow path has not reached.", behind
        ),
    ]


def build_derivation_gauges(deps: IngestDependencies) -> list[PolledGauge]:
    """What a process that derives knows by itself."""

    async def unread() -> float:
        return float(len(deps.model_selection_queue.unreadable))

    description = "Tenants whose memories their embedding model does not read."
    return [PolledGauge("reverie_tenants_unread", description, unread)]


async def _read_lag(deps: IngestDependencies, spec: ConsumerSpec) -> float:
    return float(await deps.bus.lag(spec))
