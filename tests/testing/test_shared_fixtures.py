"""The shared test servers, and resources kept open in a background event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from reverie.embedded.probe import fetch_nats_info
from reverie.testing.servers import NatsServer
from tests.support.background_loop import open_in_background, run_in_thread
from tests.support.reverie_up import until
from tests.support.stack import eventually


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


@asynccontextmanager
async def _broken() -> AsyncIterator[None]:
    raise OSError("no room")
    yield


async def test_a_shared_resource_runs_while_in_use_and_pauses_between_tests() -> None:
    ends: list[str] = []
    with open_in_background(_ticking(ends)) as held:
        for _ in range(2):
            with held.in_use() as ticks:
                before = len(ticks)
                await eventually(lambda now=before: _longer(ticks, now))  # type: ignore[misc]
            rested = len(ticks)
            await asyncio.sleep(0.02)
            assert len(ticks) == rested
        assert ends == []
    assert ends == ["in order"]


async def test_a_resource_used_only_briefly_is_paused_and_ready_for_the_next() -> None:
    with open_in_background(_ticking([])) as held:
        for _ in range(20):
            with held.in_use():
                pass
        with held.in_use() as ticks:
            before = len(ticks)
            await eventually(lambda: _longer(ticks, before))


async def test_a_resource_in_a_thread_goes_on_while_the_test_blocks() -> None:
    ends: list[str] = []
    async with run_in_thread(_ticking(ends)) as ticks:
        before = len(ticks)
        until(lambda: len(ticks) > before + 3)
        assert ends == []
    assert ends == ["in order"]


async def test_a_resource_that_fails_to_open_in_a_thread_raises() -> None:
    with pytest.raises(OSError, match="no room"):
        async with run_in_thread(_broken()):
            raise AssertionError("nothing was opened")


async def _longer(ticks: list[int], than: int) -> bool:
    return len(ticks) > than + 3


def test_a_resource_that_fails_to_open_raises_and_blocks_nobody() -> None:
    with pytest.raises(OSError, match="no room"), open_in_background(_broken()):
        raise AssertionError("nothing was opened")


def _port(url: str) -> int:
    return int(url.rsplit(":", 1)[1])


def test_nats_comes_back_on_the_same_port_after_a_kill(nats_server: NatsServer) -> None:
    url = nats_server.url
    nats_server.kill()
    with pytest.raises(OSError):
        fetch_nats_info("127.0.0.1", _port(url))
    nats_server.start()
    assert nats_server.url == url
    assert fetch_nats_info("127.0.0.1", _port(url))["jetstream"] is True
