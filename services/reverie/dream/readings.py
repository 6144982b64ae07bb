"""What dream tells Prometheus beside its requests."""

from __future__ import annotations

from reverie.dream.parts import Parts
from reverie.runtime.metrics import Reading


def readings(parts: Parts) -> list[Reading]:
    """The queue of all tenants."""

    async def queued() -> float:
        return float((await parts.dreams.queue()).queued)

    async def running() -> float:
        return float((await parts.dreams.queue()).running)

    async def parked() -> float:
        return float((await parts.dreams.queue()).parked)

    async def oldest() -> float:
        return (await parts.dreams.queue()).oldest_seconds

    return [
        Reading("reverie_dreams_queued", "Scopes that wait for a worker.", queued),
        Reading("reverie_dreams_running", "Scopes that a worker digests.", running),
        Reading("reverie_dreams_parked", "Scopes given up after their last attempt.", parked),
        Reading("reverie_dreams_oldest_seconds", "Age of the oldest request.", oldest),
    ]
