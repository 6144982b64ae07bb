"""What is held beside the loops of tests works while it is used, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.beside import held_beside
from tests.stack import eventually


@asynccontextmanager
async def _ticking(ends: list[str]) -> AsyncIterator[list[int]]:
    """A list that grows for as long as its loop runs."""
    ticks = [0]

    async def tick() -> None:
        while True:
            ticks.append(len(ticks))
            await asyncio.sleep(0.001)

    task = asyncio.create_task(tick())
    yield ticks
    task.cancel()
    ends.append("in order")


async def test_it_goes_on_beside_the_loop_of_a_test_and_stands_still_between_tests() -> None:
    ends: list[str] = []
    with held_beside(_ticking(ends)) as held:
        for _ in range(2):
            with held.used() as ticks:
                before = len(ticks)
                await eventually(lambda now=before: _longer(ticks, now))  # type: ignore[misc]
            rested = len(ticks)
            await asyncio.sleep(0.02)
            assert len(ticks) == rested
        assert ends == []
    assert ends == ["in order"]


async def test_who_used_it_for_no_time_leaves_it_at_rest_and_ready_for_the_next() -> None:
    with held_beside(_ticking([])) as held:
        for _ in range(20):
            with held.used():
                pass
        with held.used() as ticks:
            before = len(ticks)
            await eventually(lambda: _longer(ticks, before))


async def _longer(ticks: list[int], than: int) -> bool:
    return len(ticks) > than + 3


def test_what_cannot_be_opened_says_why_and_holds_up_nobody() -> None:
    @asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        raise OSError("no room")
        yield

    with pytest.raises(OSError, match="no room"), held_beside(broken()):
        raise AssertionError("nothing was opened")
