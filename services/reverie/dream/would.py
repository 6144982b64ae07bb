"""What tending would put away now, with nothing changed."""

from __future__ import annotations

from datetime import UTC, datetime

from reverie.domain.confidence import has_faded
from reverie.dream.parts import Parts
from reverie.dream.passes import FADING, PAGE
from reverie.store.tending import FIRST, Garden


async def would(parts: Parts, garden: Garden) -> dict[str, int]:
    """How many memories may fade and have faded, and how many anchors nothing touches."""
    looked, archived = await _faded(parts, garden)
    nodes, collected = await _idle(parts, garden)
    return {"looked": looked + nodes, "archived": archived, "collected": collected}


async def _faded(parts: Parts, garden: Garden) -> tuple[int, int]:
    settings, now = parts.settings, datetime.now(UTC)
    above, looked, faded = FIRST, 0, 0
    while True:
        page = await parts.tending.fading(garden, above, FADING, settings.archive_after_days, PAGE)
        looked += len(page)
        faded += sum(has_faded(one, now, settings.half_lives) for one in page)
        if len(page) < PAGE:
            return looked, faded
        above = page[-1].id


async def _idle(parts: Parts, garden: Garden) -> tuple[int, int]:
    days, above, looked, idle = parts.settings.archive_after_days, FIRST, 0, 0
    while True:
        page = await parts.tending.idle(garden, above, days, PAGE)
        looked += len(page)
        idle += sum(one for _, one in page)
        if len(page) < PAGE:
            return looked, idle
        above = page[-1][0]
