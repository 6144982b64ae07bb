"""The running system, for tests that talk to it as a client does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import aiohttp
import pytest

from reverie.testing.models import model_home
from reverie.testing.servers import Database, TestRun, fresh_database, own_nats
from tests.beside import Beside, held_beside
from tests.stack import Stack, running_stack


@pytest.fixture(scope="session")
def system(test_run: TestRun) -> Iterator[Beside[Stack]]:
    """All four services for the tests of a process, each of which takes a tenant: `stack`."""
    with (
        fresh_database(test_run) as database,
        own_nats(test_run) as nats,
        held_beside(running_stack(database, nats.url, model_home())) as held,
    ):
        yield held


@pytest.fixture
async def stack(system: Beside[Stack]) -> AsyncIterator[Stack]:
    """The shared system to a tenant of the test's own."""
    with system.used() as shared:
        async with aiohttp.ClientSession() as http:
            yield replace(shared.apart(), http=http)


@pytest.fixture
async def alone(database: Database, nats_url: str) -> AsyncIterator[Stack]:
    """All four services on a database and a bus of the test's own."""
    async with running_stack(database, nats_url, model_home()) as made:
        yield made
