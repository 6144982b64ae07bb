"""Reads that go on without a store that is away or late."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import structlog

from reverie.domain.errors import Unavailable
from reverie.runtime.timely import timely

log = structlog.get_logger("reverie.recall")

T = TypeVar("T")


async def unless_away(work: Awaitable[T], seconds: float) -> T | None:
    """As `timely`, but None where the store does not answer or is late."""
    try:
        return await timely(work, seconds)
    except (TimeoutError, Unavailable) as error:
        log.warning("store_away", error=type(error).__name__)
        return None
