"""A saturated server rejects plain requests before it parses them."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from reverie.domain.core.errors import Overloaded
from reverie.runtime.http.bad_requests import REJECTION_CACHE, HttpConnection, HttpRunner
from reverie.runtime.http.early_rejection import RejectionCache, plain_request_size
from reverie.runtime.limits.admission import AdmissionController, AdmissionLimits, AdmissionMetrics
from reverie.runtime.service import create_app
from reverie.runtime.settings.settings import Settings
from tests.runtime.sample_service import KEY, Sample
from tests.support.stack import eventually

PLAIN = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"


def test_only_what_is_plain_has_a_size() -> None:
    assert plain_request_size(PLAIN) == len(PLAIN)
    assert plain_request_size(PLAIN[:-2]) == len(PLAIN)
    assert plain_request_size(PLAIN + PLAIN) == len(PLAIN)
    assert plain_request_size(PLAIN.replace(b"Content-Length", b"content-LENGTH")) == len(PLAIN)
    assert plain_request_size(b"GET /x HTTP/1.1\r\nConnection: keep-alive\r\n\r\n") == 43
    for told in (
        b"Transfer-Encoding: chunked",
        b"expect: 100-continue",
        b"Upgrade: websocket",
        b"Connection: close",
        b"Connection: keep-alive, upgrade",
        b"Content-Length: 2",
        b"Content-Length : 2",
    ):
        assert plain_request_size(PLAIN.replace(b"Host: a", told)) is None, told
    assert plain_request_size(PLAIN.replace(b": 2", b": 2, 2")) is None
    assert plain_request_size(b"POST /x HTTP/1.1\r\nHost: a\r\n") is None
    assert plain_request_size(b"\x16\x03\x01") is None


def _request(path: str, text: str = "x") -> bytes:
    body = json.dumps({"text": text}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Line:
    """One connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    def say(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        body = await self._reader.readexactly(int(headers.get("Content-Length", 0)))
        return int(first.split()[1]), headers, body

    async def asks(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        self.say(data)
        return await self.answer()


@asynccontextmanager
async def _listening(app: web.Application) -> AsyncIterator[HttpRunner]:
    runner = HttpRunner(app, access_log=None)
    await runner.setup()
    try:
        yield runner
    finally:
        await runner.cleanup()


@asynccontextmanager
async def _line(runner: HttpRunner) -> AsyncIterator[Line]:
    assert runner.server is not None
    ours, theirs = socket.socketpair()
    await asyncio.get_running_loop().connect_accepted_socket(runner.server, theirs)
    line = Line(*await asyncio.open_connection(sock=ours))
    try:
        yield line
    finally:
        line.writer.close()


async def test_a_full_door_answers_what_it_refused_before_without_reading_it() -> None:
    sample = Sample()
    app = create_app(sample.service(), Settings(max_concurrent_requests=1, request_queue=1))
    async with (
        _listening(app) as runner,
        _line(runner) as first,
        _line(runner) as second,
        _line(runner) as line,
    ):
        assert runner.server is not None
        first.say(_request("/v1/held"))
        await sample.entered.wait()
        second.say(_request("/v1/held"))
        asked = _request("/v1/notes")

        async def full() -> bool:
            return (await line.asks(asked))[0] == 503

        await eventually(full)
        read = runner.server.requests_count
        known = await line.asks(asked)
        assert runner.server.requests_count == read
        assert known[0] == 503
        assert known[1]["Retry-After"] in {"1", "2"}
        # In pieces, with the next one behind it: both are answered, each once and in order.
        for piece in (asked[:-9], asked[-9:-5], asked[-5:] + asked):
            line.say(piece)
            await asyncio.sleep(0.01)
        assert [(await line.answer())[0] for _ in range(2)] == [503, 503]
        assert runner.server.requests_count == read
        # What cannot be told at a glance is read, and refused by the ordinary way alike.
        odd = await line.asks(asked.replace(b"Host:", b"Connection: keep-alive, x\r\nHost:"))
        assert runner.server.requests_count == read + 1
        assert {*odd[1]} == {*known[1]}
        assert {*json.loads(odd[2])} == {*json.loads(known[2])}
        assert (
            json.loads(known[2])["detail"]
            == "1 requests are under way and 1 wait: try again shortly"
        )
        # Nobody hangs up on who was only ever turned away.
        async with _line(runner) as another:
            assert (await another.asks(asked))[0] == 503
            assert runner.server.requests_count == read + 1
            told = runner.server.connections
            assert all(isinstance(one, HttpConnection) and one.spoke for one in told)
        async with _line(runner) as probe:
            assert (await probe.asks(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"))[0] == 200
            metrics = await probe.asks(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        counted = [
            float(one.split()[-1])
            for one in metrics[2].decode().splitlines()
            if one.startswith("reverie_http_requests_total") and '"503"' in one
        ]
        assert sum(counted) >= 5
        sample.go.set()
        assert (await first.answer())[0] == (await second.answer())[0] == 200
        assert (await line.asks(asked))[0] == 201


class Moody(AdmissionController):
    """A door that is full now and then."""

    def check(self) -> None:
        if random.random() < 0.5:
            raise Overloaded("requests", 1, 1)


@pytest.mark.parametrize("seed", [3, 4])
async def test_however_requests_are_cut_each_is_answered_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    random.seed(seed)
    heard: list[str] = []

    async def note(request: web.Request) -> web.Response:
        heard.append((await request.json())["text"])
        return web.Response(text=heard[-1])

    app = web.Application()
    app.router.add_post("/x", note)
    door = Moody(AdmissionLimits(), AdmissionMetrics(CollectorRegistry()), "self")
    turnstile = app[REJECTION_CACHE] = RejectionCache(10_000)
    turnstile._entries[b"POST /x"] = (door, lambda: None)
    async with _listening(app) as runner:
        refused = 0
        for _ in range(15):
            async with _line(runner) as line:
                said = [f"{chance.random()}" * chance.choice([1, 1, 40]) for _ in range(8)]
                heard.clear()
                for text in said:
                    rest = _request("/x", text)
                    while rest:
                        cut = chance.choice([len(rest), chance.randrange(1, len(rest) + 1)])
                        line.say(rest[:cut])
                        rest = rest[cut:]
                        await asyncio.sleep(chance.choice([0, 0, 0.001]))
                answers = [await line.answer() for _ in said]
                good = [body.decode() for status, _, body in answers if status == 200]
                refused += sum(status == 503 for status, _, _ in answers)
                assert good == heard
                assert [text for text in said if text in good] == good
        assert 0 < refused < 120
