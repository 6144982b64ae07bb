"""Calls on a NATS connection fail with the connection, and cancellation works."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client
from nats.errors import ConnectionClosedError

from reverie.bus.nats_session import NatsSession
from reverie.domain.core.errors import Unavailable


@pytest.fixture
async def life() -> NatsSession:
    client = Client()
    return NatsSession(client, client.jetstream(), asyncio.Future())


async def _driver(makes: Exception | None) -> str:
    """Waits, and makes something else of being cancelled, as the driver does now and then."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if makes is not None:
            raise makes from None
    return "came in the same moment"


@pytest.mark.parametrize("makes", [None, TimeoutError(), ConnectionClosedError()])
async def test_cancellation_always_stops_the_task_whatever_the_driver_raises(
    life: NatsSession, makes: Exception | None
) -> None:
    for ends in (False, True):
        task = asyncio.create_task(life.run(_driver(makes)))
        await asyncio.sleep(0)
        if ends:
            life.mark_closed()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_waiting_calls_fail_when_the_connection_ends_and_their_callers_continue(
    life: NatsSession,
) -> None:
    async def asks() -> str:
        with pytest.raises(Unavailable):
            await life.run(asyncio.sleep(60))
        with pytest.raises(Unavailable):
            await life.run(asyncio.sleep(60))
        await asyncio.sleep(0)
        return "goes on"

    task = asyncio.create_task(asks())
    await asyncio.sleep(0)
    life.mark_closed()
    assert (await task, task.cancelling()) == ("goes on", 0)
