"""Keep parts running: what ends is started again, at growing intervals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from reverie.domain.errors import ReverieError
from reverie.embedded.report import Report

LOOK = 0.2
"""Seconds between two looks at the parts."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 8.0
"""Seconds; with a start after it, doors are back within 15 of what kept a part from starting."""
SETTLED = 10.0
"""Seconds of life after which an end is no failed start, so that the pause is short again."""


class Part(Protocol):
    """A process that can be started, looked at and stopped. Calls may block for seconds."""

    name: str

    def start(self) -> None:
        """Start it, or adopt it where it runs."""

    def running(self) -> bool:
        """Whether its process is there."""
        ...

    def stop(self) -> None:
        """End it in order, or by force."""


@dataclass
class _Watched:
    part: Part
    deaths: int = 0
    born: float = 0.0
    due: float | None = None


async def watch(parts: Iterable[Part], stop: asyncio.Event, report: Report) -> None:
    """Until `stop`, start again what ended."""
    watched = [_Watched(part, born=time.monotonic()) for part in parts]
    while not stop.is_set():
        for one in watched:
            await _tend(one, report)
        await pause(stop, LOOK)


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait for the seconds, or until `stop`."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


async def _tend(one: _Watched, report: Report) -> None:
    now = time.monotonic()
    if one.due is None:
        if not one.part.running():
            _plan(one, now, report)
    elif now >= one.due:
        one.due, one.born = None, now
        await _restart(one.part, report)


def _plan(one: _Watched, now: float, report: Report) -> None:
    one.deaths = 1 if now - one.born > SETTLED else one.deaths + 1
    wait = min(FIRST_PAUSE * 2 ** (one.deaths - 1), LONGEST_PAUSE)
    one.due = now + wait
    report.note(f"{one.part.name} ended; it starts again in {wait:g} s")


async def _restart(part: Part, report: Report) -> None:
    try:
        await asyncio.to_thread(part.start)
    except (ReverieError, OSError) as error:
        report.note(f"{part.name} does not start: {error}")
