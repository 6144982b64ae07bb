"""The `bus` fixture: connected to a NATS of the test's own, with the streams of `bus_cases`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from reverie.bus.interface import MessageBus
from reverie.bus.nats_bus import connect
from reverie.bus.streams import ensure_streams
from tests.bus.bus_cases import SPECS


@pytest.fixture
async def bus(nats_url: str) -> AsyncIterator[MessageBus]:
    await ensure_streams(nats_url, consumers=SPECS)
    async with connect(nats_url, "tests") as connected:
        assert await connected.wait_connected(30)
        yield connected
