"""What ingest tells Prometheus beside its requests."""

from __future__ import annotations

from functools import partial

from reverie.bus.streams import CONSUMERS, ConsumerSpec
from reverie.contracts.events import DEAD
from reverie.ingest.parts import Parts
from reverie.runtime.metrics import Reading


def readings(parts: Parts) -> list[Reading]:
    """How far behind the outbox, the bus, the slow path and dreams are; there may be no dream
    worker to tell of its queue."""

    async def waiting() -> float:
        return float((await parts.outbox.age())[0])

    async def oldest() -> float:
        return (await parts.outbox.age())[1]

    async def behind() -> float:
        return float((await parts.clock.behind()).memories)

    async def queued() -> float:
        return float((await parts.dreams.queue()).queued)

    async def running() -> float:
        return float((await parts.dreams.queue()).running)

    async def asked() -> float:
        return (await parts.dreams.queue()).oldest_seconds

    async def dead() -> float:
        return float(await parts.bus.held(DEAD))

    return [
        *(
            Reading(
                "reverie_bus_lag",
                "Messages that a consumer has not acknowledged: waiting and in work.",
                partial(_lag, parts, spec),
                {"consumer": spec.name},
            )
            for spec in CONSUMERS
        ),
        Reading("reverie_dead_letters", "Messages among the dead letters.", dead),
        Reading("reverie_outbox_waiting", "Events not yet on the bus.", waiting),
        Reading("reverie_outbox_oldest_seconds", "Age of the oldest of them.", oldest),
        Reading("reverie_dreams_queued", "Scopes that wait for a worker.", queued),
        Reading("reverie_dreams_running", "Scopes that a worker digests.", running),
        Reading("reverie_dreams_oldest_seconds", "Age of the oldest request.", asked),
        Reading("reverie_memories_unenriched", "Memories the slow path has not reached.", behind),
    ]


def of_deriving(parts: Parts) -> list[Reading]:
    """What a process that derives knows by itself."""

    async def unread() -> float:
        return float(len(parts.letters.unread))

    told = "Tenants whose memories their embedding model does not read."
    return [Reading("reverie_tenants_unread", told, unread)]


async def _lag(parts: Parts, spec: ConsumerSpec) -> float:
    return float(await parts.bus.lag(spec))
