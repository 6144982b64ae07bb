"""Ports with two sides: the real one and its twin."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.contract.bus_cases import SPECS

from reverie.bus.connection import connect
from reverie.bus.port import Bus
from reverie.bus.streams import ensure_streams
from reverie.testing.bus import MemoryBus
from reverie.testing.servers import NatsServer


@pytest.fixture(params=["memory", "nats"])
async def bus(request: pytest.FixtureRequest) -> AsyncIterator[Bus]:
    if request.param == "memory":
        yield MemoryBus()
        return
    server: NatsServer = request.getfixturevalue("nats_server")
    await ensure_streams(server.url, consumers=SPECS)
    async with connect(server.url, "contract") as real:
        assert await real.wait_connected(10)
        yield real
