"""The `place` fixture: a tenant with a session and a memory, for requests that are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.interfaces.invalid_input import Place, open_place
from tests.support.stack import Stack


@pytest.fixture
async def place(stack: Stack) -> AsyncIterator[Place]:
    async with open_place(stack) as made:
        yield made
