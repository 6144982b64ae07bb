"""The sample service, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.runtime.sample_service import Sample, sample_client


@pytest.fixture
def sample() -> Sample:
    return Sample()


@pytest.fixture
async def http(sample: Sample) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the running sample, with the writer's key."""
    async with sample_client(sample) as session:
        yield session
