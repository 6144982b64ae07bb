"""Polled Prometheus gauges of ingest: outbox, bus lag, dream queue, and backlog."""

from __future__ import annotations

from functools import partial

from reverie.bus.interface import MessageBus
from reverie.bus.streams import CONSUMERS
from reverie.contracts.events import DEAD_LETTER_STREAM
from reverie.runtime.observability.metrics import PolledGauge
from reverie.store.platform.leader_lock import LeaderLock
from reverie.store.sessions.dream_queue import DreamQueue
from reverie_services.ingest.enrich import derivation_timeout
from reverie_services.ingest.model_selection_queue import ModelSelectionQueue
from reverie_services.ingest.outbox_cleanup import BufferedOutbox
from reverie_services.startup import build_dream_queue_gauges


def build_gauges(
    bus: MessageBus, outbox: BufferedOutbox, leader_lock: LeaderLock, dreams: DreamQueue
) -> list[PolledGauge]:
    """Builds gauges of the backlog of the outbox, the bus, enrichment and dreams.

    Dreams are included because there may be no dream worker to report its queue.
    """

    async def waiting() -> float:
        return (await outbox.age())[0]

    async def oldest() -> float:
        return (await outbox.age())[1]

    async def unenriched() -> float:
        return (await leader_lock.count_backlog()).memories

    async def failed() -> float:
        return (await leader_lock.count_backlog()).failed_memories

    return [
        *(
            PolledGauge(
                "reverie_bus_lag",
                "Messages that a consumer has not acknowledged, waiting and in progress.",
                partial(bus.lag, spec),
                {"consumer": spec.name},
            )
            for spec in CONSUMERS
        ),
        PolledGauge(
            "reverie_dead_letters",
            "Messages among the dead letters.",
            partial(bus.count_messages, DEAD_LETTER_STREAM),
        ),
        PolledGauge("reverie_outbox_waiting", "Events not yet on the bus.", waiting),
        PolledGauge(
            "reverie_outbox_oldest_seconds",
            "Age of the oldest event not yet on the bus, in seconds.",
            oldest,
        ),
        *build_dream_queue_gauges(dreams),
        PolledGauge(
            "reverie_memories_unenriched", "Memories that wait for enrichment.", unenriched
        ),
        PolledGauge(
            "reverie_memories_failed",
            "Memories whose enrichment failed five times: they lack vectors or edges.",
            failed,
        ),
    ]


def build_derivation_gauges(queue: ModelSelectionQueue) -> list[PolledGauge]:
    """Builds the gauges that a derivation process can measure by itself."""

    async def unread() -> float:
        return len(queue.unreadable)

    async def cut() -> float:
        return derivation_timeout.cuts

    description = "Tenants whose embedding model does not support the script of their memories."
    return [
        PolledGauge("reverie_tenants_unread", description, unread),
        PolledGauge(
            "reverie_derivations_cut",
            "Readings of memories' texts that took too long and were given up since the start.",
            cut,
        ),
    ]
