"""Fixtures: what starts services, and a database and bus for processes that get killed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from chaos.crashes.service_processes import (
    ServiceStarter,
    World,
    open_world,
    service_starter,
)
from reverie.testing.servers import DatabaseUrls, TestRun

pytest_plugins = ("tests.support.fixtures",)


@pytest.fixture
def starter() -> Iterator[ServiceStarter]:
    """What starts the services of a test, and kills those that are left."""
    with service_starter() as made:
        yield made


@pytest.fixture
async def world(
    database: DatabaseUrls, nats_url: str, test_run: TestRun, starter: ServiceStarter
) -> AsyncIterator[World]:
    """A database and a bus of the test's own, and no process yet."""
    async with open_world(database, nats_url, test_run.new_folder("chaos"), starter) as made:
        yield made
