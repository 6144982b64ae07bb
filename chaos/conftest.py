"""Fixtures: the service forker, and a database and bus for processes that get killed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from chaos.crashes.forker import Forker, forking
from chaos.crashes.service_processes import World, open_world
from reverie.testing.servers import DatabaseUrls, TestRun

pytest_plugins = ("tests.support.fixtures",)


@pytest.fixture(scope="session")
def forker(test_run: TestRun) -> Iterator[Forker]:
    """What starts the services of all tests."""
    with forking(test_run) as made:
        yield made


@pytest.fixture
async def world(
    database: DatabaseUrls, nats_url: str, test_run: TestRun, forker: Forker
) -> AsyncIterator[World]:
    """A database and a bus of the test's own, and no process yet."""
    async with open_world(database, nats_url, test_run.new_folder("chaos"), forker) as made:
        yield made
