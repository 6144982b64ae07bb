"""The Python client against a running system, and against a network that loses answers."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest

from reverie.client import AsyncReverie, Refused
from reverie.domain.errors import Unavailable
from reverie.testing.proxy import ChaosProxy
from tests.stack import Stack, eventually


async def test_the_client_writes_finds_and_reads_and_says_what_was_refused(stack: Stack) -> None:
    async with AsyncReverie(stack.url, stack.key) as reverie:
        made = await reverie.remember("The ferry leaves at nine.", kind="lesson", key="ferry")
        found = await reverie.recall("when does the ferry leave", limit=3, kinds=["lesson"])
        assert [one.id for one in found.memories] == [made.id]
        assert (await reverie.memory(str(made.id))).key == "ferry"
        assert "ferry" in (await reverie.context(scope=["global"])).markdown
        with pytest.raises(Refused, match="ferry") as refused:
            await reverie.remember("The ferry leaves at ten.", kind="lesson", key="ferry")
        problem = refused.value.problem
        assert (refused.value.status, refused.value.reason) == (409, "conflict")
        assert problem.current is not None
        assert problem.current["id"] == str(made.id)
        with pytest.raises(Refused) as unread:
            await reverie.memory("00000000-0000-7000-8000-000000000000")
        assert unread.value.reason == "not_found"
    async with AsyncReverie(stack.url, "rv_unknown") as stranger:
        with pytest.raises(Refused) as closed:
            await stranger.context()
        assert closed.value.reason == "unauthenticated"


async def test_an_answer_that_is_lost_is_asked_for_again_and_the_write_happens_once(
    stack: Stack,
) -> None:
    place = urlsplit(stack.url)
    async with (
        ChaosProxy(str(place.hostname), int(place.port or 0)) as proxy,
        AsyncReverie(f"http://127.0.0.1:{proxy.port}", stack.key, tries=10) as reverie,
    ):
        proxy.delay(0.2)
        writing = asyncio.create_task(reverie.remember("Tides turn twice a day.", kind="lesson"))
        await eventually(lambda: _true(proxy.accepted > 0))
        proxy.half_close()
        assert (await writing).status == "created"
        assert len((await stack.get("/v1/memories"))["items"]) == 1
    async with AsyncReverie(f"http://127.0.0.1:{proxy.port}", stack.key, tries=2) as reverie:
        with pytest.raises(Unavailable, match="does `reverie up` run"):
            await reverie.recall("tides")


async def _true(held: bool) -> bool:
    return held
