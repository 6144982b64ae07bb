"""The `bus` fixture: each test runs on the in-memory bus and on NATS."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from reverie.bus.interface import MessageBus
from reverie.bus.nats_bus import connect
from reverie.bus.streams import ensure_streams
from reverie.testing.in_memory_bus import InMemoryBus
from reverie.testing.servers import NatsServer
from tests.contract.bus_cases import SPECS


@pytest.fixture(params=["memory", "nats"])
async def bus(request: pytest.FixtureRequest) -> AsyncIterator[MessageBus]:
    if request.param == "memory":
        yield InMemoryBus()
        return
    server: NatsServer = request.getfixturevalue("nats_server")
    await ensure_streams(server.url, consumers=SPECS)
    async with connect(server.url, "contract") as real:
        assert await real.wait_connected(10)
        yield real
