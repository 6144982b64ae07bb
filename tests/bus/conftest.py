"""The `bus` fixture: connected to a NATS of the file's, with fresh streams of `bus_cases`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import nats
import pytest

from reverie.bus.interface import MessageBus
from reverie.bus.nats_bus import connect
from reverie.bus.streams import ensure_streams
from reverie.testing.servers import NatsServer, TestRun, own_nats
from tests.bus.bus_cases import SPECS


@pytest.fixture(scope="module")
def shared_nats(test_run: TestRun) -> Iterator[NatsServer]:
    """A NATS for tests that do not stop it."""
    with own_nats(test_run) as server:
        yield server


@pytest.fixture
async def bus(shared_nats: NatsServer) -> AsyncIterator[MessageBus]:
    async with await nats.connect(shared_nats.url) as client:
        jetstream = client.jetstream()
        for stream in await jetstream.streams_info():
            assert stream.config.name
            await jetstream.delete_stream(stream.config.name)
    await ensure_streams(shared_nats.url, consumers=SPECS)
    async with connect(shared_nats.url, "tests") as connected:
        assert await connected.wait_connected(30)
        yield connected
