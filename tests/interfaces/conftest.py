"""The `place` fixture: a tenant with a session and a memory, for requests that are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from tests.interfaces.invalid_input import Place
from tests.support.stack import Stack
from tests.support.tables import Tables


@pytest.fixture
async def place(stack: Stack) -> AsyncIterator[Place]:
    started = await stack.post("/v1/sessions/start", {"agent": "a", "project": "shop"})
    kept = await stack.post("/v1/remember", {"content": "what stands"})
    with closing(Tables(stack.admin_url, stack.number())) as tables:
        yield Place(stack, tables, started["session"], kept["id"])
