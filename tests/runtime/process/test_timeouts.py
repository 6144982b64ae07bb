"""A deadline is kept even if the cancelled work is slow to clean up."""

from __future__ import annotations

import asyncio

import pytest

from reverie.runtime.process.asyncio_helpers import run_with_timeout


async def test_a_result_or_failure_in_time_is_passed_on() -> None:
    async def fail() -> None:
        raise LookupError

    assert await run_with_timeout(asyncio.sleep(0, "done"), 5) == "done"
    with pytest.raises(LookupError):
        await run_with_timeout(fail(), 5)


async def test_late_work_is_cancelled_and_not_awaited() -> None:
    told, let_go, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow_to_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            told.set()
            await let_go.wait()
            ended.set()
            raise LookupError

    with pytest.raises(TimeoutError):
        await run_with_timeout(slow_to_end(), 0.01)
    await told.wait()
    assert not ended.is_set()
    let_go.set()
    await ended.wait()


async def test_cancelling_the_caller_cancels_the_work() -> None:
    begun, told = asyncio.Event(), asyncio.Event()

    async def endless() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.set()

    waiting = asyncio.create_task(run_with_timeout(endless(), 60))
    await begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await told.wait()
