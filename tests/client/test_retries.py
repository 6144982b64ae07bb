"""Which client calls are retried, on error statuses and when a network loses the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from reverie.client import ApiError, AsyncReverie, Reverie
from reverie.contracts.problems import HTTP_STATUS, build_problem
from reverie.domain.core.errors import InvalidInput, Unavailable
from reverie.testing.chaos_proxy import ChaosProxy
from tests.support.stack import Stack, eventually

ANSWER = {"id": "019c2f6e-8d4b-7c31-9a7e-3fa9c1d20b55", "version": 1, "changed": True}
MADE = {**ANSWER, "status": "created"}


@dataclass
class Gateway:
    """Answers what it is told to, then well; and notes what it was asked."""

    url: str = ""
    says: list[tuple[str, str | None]] = field(default_factory=list)
    asked: list[str | None] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.headers.get("Idempotency-Key"))
        if not self.says:
            return web.json_response(MADE if request.method == "POST" else ANSWER)
        code, after = self.says.pop(0)
        body = build_problem(code, "not now").model_dump(mode="json")
        headers = {"Retry-After": after} if after else {}
        return web.json_response(body, status=HTTP_STATUS[code], headers=headers)


@asynccontextmanager
async def _serve(
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    """The address of a server that answers every request so."""
    app = web.Application()
    app.router.add_route("*", "/{any:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url(""))


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    made = Gateway()
    async with _serve(made.answer) as made.url:
        yield made


@pytest.mark.parametrize(
    ("call", "says", "times", "refused"),
    [
        ("remember", [("unavailable", "0"), ("unavailable", None)], 3, None),
        ("remember", [("too_many", "0")], 2, None),
        ("remember", [("too_many", "3600")], 1, "too_many"),
        ("remember", [("conflict", "0")], 2, None),
        ("remember", [("conflict", None)], 1, "conflict"),
        ("edit_memory", [("unavailable", None)], 2, None),
        ("edit_memory", [("too_many", "0")], 2, None),
        ("edit_memory", [("internal", None)], 1, "internal"),
        ("edit_memory", [("unavailable", None)] * 9, 4, "unavailable"),
        ("forget", [("not_found", None)], 1, "not_found"),
    ],
)
async def test_a_call_is_retried_where_safe_and_for_a_limited_time(
    gateway: Gateway, call: str, says: Any, times: int, refused: str | None
) -> None:
    gateway.says = list(says)
    given: dict[str, dict[str, Any]] = {
        "remember": {"content": "x"},
        "edit_memory": {"id": "3fa9c1d2", "changes": {"content": "x"}},
        "forget": {"id": "3fa9c1d2"},
    }
    async with AsyncReverie(gateway.url, "key", max_attempts=4) as reverie:
        asking = getattr(reverie, call)(**given[call])
        if refused:
            with pytest.raises(ApiError) as caught:
                await asking
            assert caught.value.problem_code == refused
        else:
            assert (await asking).version == 1
    assert len(gateway.asked) == times
    assert len(set(gateway.asked)) == 1
    assert gateway.asked[0] is not None


async def test_a_truncated_answer_is_requested_again() -> None:
    asked: list[str | None] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers.get("Idempotency-Key"))
        if len(asked) > 1:
            return web.json_response(MADE)
        cut = web.StreamResponse(headers={"Content-Length": "1000"})
        await cut.prepare(request)
        await cut.write(b'{"id": "019c')
        assert request.transport
        request.transport.close()
        return cut

    async with _serve(answer) as url, AsyncReverie(url, "key") as reverie:
        assert (await reverie.remember("x")).version == 1
    assert len(asked) == 2
    assert len(set(asked)) == 1


async def test_a_lost_answer_is_requested_again_and_the_write_happens_once(
    stack: Stack,
) -> None:
    place = urlsplit(stack.url)
    async with (
        ChaosProxy(str(place.hostname), int(place.port or 0)) as proxy,
        AsyncReverie(f"http://127.0.0.1:{proxy.port}", stack.key, max_attempts=10) as reverie,
    ):
        proxy.delay(0.2)
        writing = asyncio.create_task(reverie.remember("Tides turn twice a day.", kind="lesson"))
        await eventually(lambda: _true(proxy.accepted > 0))
        proxy.half_close()
        assert (await writing).status == "created"
        assert len((await stack.get("/v1/memories"))["items"]) == 1
    async with AsyncReverie(f"http://127.0.0.1:{proxy.port}", stack.key, max_attempts=2) as reverie:
        with pytest.raises(Unavailable, match="does `reverie up` run"):
            await reverie.recall("tides")


async def _true(held: bool) -> bool:
    return held


async def test_a_redirect_is_told_with_what_to_do() -> None:
    async def move(_: web.Request) -> web.Response:
        raise web.HTTPMovedPermanently("https://elsewhere.example/")

    async with _serve(move) as url, AsyncReverie(url, "k") as reverie:
        with pytest.raises(ApiError, match="redirects \\(301\\)"):
            await reverie.recall("deploys")


@pytest.mark.parametrize("key", ["", " \n"])
def test_an_empty_key_is_refused_before_a_call(key: str) -> None:
    with pytest.raises(InvalidInput, match="key: is empty"):
        Reverie("http://127.0.0.1:9", key)


def test_a_key_that_no_header_takes_is_refused_without_being_shown() -> None:
    AsyncReverie("http://127.0.0.1:9", "rv_secret-of-ada\n")
    with pytest.raises(InvalidInput) as refused:
        AsyncReverie("http://127.0.0.1:9", "rv_secret\nof-ada")
    assert "secret" not in str(refused.value)


class UnreadableFile(BytesIO):
    """A file on a disk that fails."""

    def read(self, size: int | None = -1, /) -> bytes:
        raise OSError("the disk fails")


async def test_a_file_that_cannot_be_read_is_not_told_as_a_missing_gateway(
    gateway: Gateway,
) -> None:
    async with AsyncReverie(gateway.url, "key") as reverie:
        with pytest.raises(OSError, match="the disk fails"):
            await reverie.import_memories(UnreadableFile())


async def test_an_upload_that_is_refused_early_is_told_by_its_problem(gateway: Gateway) -> None:
    gateway.says = [("too_large", None)]
    async with AsyncReverie(gateway.url, "key") as reverie:
        with pytest.raises(ApiError) as refused:
            await reverie.import_memories(BytesIO(b"x" * 20_000_000))
        assert refused.value.problem_code == "too_large"


async def test_an_event_is_one_line_whatever_characters_it_holds() -> None:
    text = "one\u2028two\x85three"

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        data = json.dumps({"text": text}, ensure_ascii=False)
        await stream.write(f"id: 1\n\nid: 2\nevent: edited\ndata: {data}\n\n".encode())
        return stream

    async with _serve(answer) as url, AsyncReverie(url, "k") as reverie:
        event = await anext(reverie.stream_events())
    assert (event.cursor, event.data) == ("2", {"text": text})


@pytest.mark.parametrize("url", ["nowhere", "ftp://127.0.0.1", "http://127.0.0.1:1"])
async def test_an_address_where_nothing_answers_is_unavailable(url: str) -> None:
    async with AsyncReverie(url, "key", max_attempts=1) as reverie:
        with pytest.raises(Unavailable, match="does `reverie up` run"):
            await reverie.recall("tides")
