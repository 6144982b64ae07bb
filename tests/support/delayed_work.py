"""A pytest plugin that delays what is asynchronous: a test that takes it for done fails.

`python -m pytest -p tests.support.delayed_work tests/recall`; REVERIE_TEST_DELAY sets the seconds.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

from reverie.bus import consumer
from reverie.runtime.http import instrumentation
from reverie.runtime.process.asyncio_helpers import BatchWriter

SECONDS = float(os.environ.get("REVERIE_TEST_DELAY", "0.6"))


def _late(work: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
    async def delayed(given: Any) -> None:
        await asyncio.sleep(SECONDS)
        await work(given)

    return delayed


def pytest_configure() -> None:
    """Delays the handlers of messages, the jobs after a reply, and what is written in batches."""
    process, run_job, start_writer = (
        consumer._process,
        instrumentation._run_guarded,
        BatchWriter.__init__,
    )

    async def process_late(bus: Any, spec: Any, delivery: Any, handler: Any) -> None:
        await process(bus, spec, delivery, _late(handler))

    def start_late(writer: Any, write: Any, *more: Any, **named: Any) -> None:
        start_writer(writer, _late(write), *more, **named)

    consumer._process = process_late
    instrumentation._run_guarded = _late(run_job)  # type: ignore[assignment]
    BatchWriter.__init__ = start_late  # type: ignore[assignment, method-assign]
