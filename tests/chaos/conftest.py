"""Servers and a key for processes that are going to be killed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from reverie.testing.servers import Database, TestRun
from tests.chaos.forker import Forker, forking
from tests.chaos.served import World, open_world


@pytest.fixture(scope="session")
def forker(test_run: TestRun) -> Iterator[Forker]:
    """What starts the services of all tests."""
    with forking(test_run) as made:
        yield made


@pytest.fixture
async def world(
    database: Database, nats_url: str, test_run: TestRun, forker: Forker
) -> AsyncIterator[World]:
    """A database and a bus of the test's own, and no process yet."""
    async with open_world(database, nats_url, test_run.new_folder("chaos"), forker) as made:
        yield made
