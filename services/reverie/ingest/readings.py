"""What ingest tells Prometheus beside its requests."""

from __future__ import annotations

from reverie.ingest.parts import Parts
from reverie.runtime.metrics import Reading


def readings(parts: Parts) -> list[Reading]:
    """How far behind the outbox and the slow path are."""

    async def waiting() -> float:
        return float((await parts.outbox.age())[0])

    async def oldest() -> float:
        return (await parts.outbox.age())[1]

    async def behind() -> float:
        return float((await parts.clock.behind()).memories)

    return [
        Reading("reverie_outbox_waiting", "Events not yet on the bus.", waiting),
        Reading("reverie_outbox_oldest_seconds", "Age of the oldest of them.", oldest),
        Reading("reverie_memories_unenriched", "Memories the slow path has not reached.", behind),
    ]
