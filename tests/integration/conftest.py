"""The running system, for tests that talk to it as a client does."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from reverie.testing.models import model_home
from reverie.testing.servers import Database
from tests.stack import Stack, running_stack


@pytest.fixture
async def stack(database: Database, nats_url: str) -> AsyncIterator[Stack]:
    """All four services on a database and a bus of the test's own."""
    async with running_stack(database, nats_url, model_home()) as made:
        yield made
