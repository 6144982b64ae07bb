"""The running system, for tests that talk to it as a client does."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from reverie.testing.models import model_home
from reverie.testing.servers import Database, TestRun, fresh_database, own_nats
from tests.stack import Stack, running_stack


@pytest.fixture
async def stack(database: Database, nats_url: str) -> AsyncIterator[Stack]:
    """All four services on a database and a bus of the test's own."""
    async with running_stack(database, nats_url, model_home()) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(test_run: TestRun) -> AsyncIterator[Stack]:
    """All four services for the tests of a file, each of which takes a tenant: `apart()`.

    They run in the loop of the file: its tests are marked `asyncio(loop_scope="module")`.
    """
    with fresh_database(test_run) as database, own_nats(test_run) as nats:
        async with running_stack(database, nats.url, model_home()) as made:
            yield made


@pytest_asyncio.fixture(loop_scope="module")
async def alone(database: Database, nats_url: str) -> AsyncIterator[Stack]:
    """In such a file, services of a test's own, whose work ends with the test."""
    async with running_stack(database, nats_url, model_home()) as made:
        yield made
