"""The gateway forwards calls unchanged and reports services that do not answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from reverie.runtime.service import start_service
from reverie.runtime.settings.settings import Settings
from tests.runtime.sample_service import KEY, Sample, gateway

SETTINGS = Settings(body_limit=4096)
GOOD = {"text": "hello"}


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(url, headers=headers) as session:
        yield session


@pytest.fixture
async def http(sample: Sample) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a gateway before the running sample."""
    async with (
        start_service(sample.service(), SETTINGS) as upstream,
        start_service(gateway(sample, upstream), SETTINGS) as url,
        client_of(url) as session,
    ):
        yield session


async def test_bodies_queries_and_paths_below_the_prefix_are_proxied(
    http: aiohttp.ClientSession, sample: Sample
) -> None:
    async with http.post("/v1/notes", json=GOOD) as response:
        assert (response.status, sample.notes) == (201, ["hello"])
    async with http.get("/v1/notes?limit=2&tag=a%2Fb&tag=c") as response:
        assert (await response.json())["items"] == [0, 1]
    async with http.get("/v1/notes/no-uuid") as response:
        assert (response.status, (await response.json())["field"]) == (422, "id")


async def test_a_long_answer_is_compressed_only_on_request(
    http: aiohttp.ClientSession,
) -> None:
    for wanted, packing in ((None, None), ("identity", None), ("gzip", "gzip")):
        headers = {"Accept-Encoding": wanted} if wanted else {}
        skipped: Any = {"skip_auto_headers": ["Accept-Encoding"], "headers": headers}
        async with http.post("/v1/notes", json={"text": "ab" * 1000}, **skipped) as response:
            assert response.headers.get("Content-Encoding") == packing
            assert (await response.json())["text"] == "ab" * 1000


async def test_problems_are_returned_unchanged(http: aiohttp.ClientSession) -> None:
    async with http.post("/v1/notes", data=b"{", headers={"X": "y"}) as response:
        assert (response.status, response.content_type) == (400, "application/problem+json")
    async with http.get("/v1/notes", headers={"Authorization": "Bearer wrong"}) as response:
        assert response.status == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
    async with http.delete("/v1/notes") as response:
        assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD, POST")


async def test_a_path_that_only_begins_like_the_prefix_is_not_proxied(
    http: aiohttp.ClientSession,
) -> None:
    for path in ("/v1/notesx", "/v1/optional"):
        async with http.get(path) as response:
            assert (response.status, (await response.json())["code"]) == (404, "not_found")


async def test_an_oversized_body_is_not_proxied(
    http: aiohttp.ClientSession, sample: Sample
) -> None:
    async with http.post("/v1/notes", data=b"a" * 5000) as response:
        assert response.status == 413
    assert sample.keys.lookups == 0


async def test_an_unreachable_service_is_named(sample: Sample) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        upstream = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        async with (
            start_service(gateway(sample, upstream), SETTINGS) as url,
            client_of(url) as http,
            http.post("/v1/notes", json=GOOD) as response,
        ):
            document = await response.json()
    assert (response.status, document["code"]) == (503, "unavailable")
    assert "ingest does not answer" in document["detail"]
    assert int(response.headers["Retry-After"]) >= 1


async def test_a_service_that_returns_is_reached_again(sample: Sample) -> None:
    async with start_service(sample.service(), SETTINGS) as first:
        port = int(first.rpartition(":")[2])
    async with start_service(gateway(sample, first), SETTINGS) as url, client_of(url) as http:
        async with http.post("/v1/notes", json=GOOD) as response:
            assert response.status == 503
        async with (
            start_service(sample.service(), SETTINGS, port=port),
            http.post("/v1/notes", json=GOOD) as response,
        ):
            assert response.status == 201


@asynccontextmanager
async def raw_server(answer: bytes, hold: asyncio.Event | None = None) -> AsyncIterator[str]:
    """A server that writes `answer` to whoever asks, then hangs up (or holds on)."""

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        if hold is not None:
            await hold.wait()
        writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200"])
async def test_an_invalid_answer_counts_as_unreachable(sample: Sample, answer: bytes) -> None:
    async with (
        raw_server(answer) as upstream,
        start_service(gateway(sample, upstream), SETTINGS) as url,
        client_of(url) as http,
        http.post("/v1/notes", data=b"{}") as response,
    ):
        assert response.status == 503


async def test_a_service_that_never_answers_times_out(sample: Sample) -> None:
    hold = asyncio.Event()
    short = Settings(request_timeout=0.3)
    async with (
        raw_server(b"", hold) as upstream,
        start_service(gateway(sample, upstream), short) as url,
        client_of(url) as http,
        http.get("/v1/notes") as response,
    ):
        document = await response.json()
        hold.set()
    assert response.status == 503
    assert "took too long" in document["detail"]


async def test_a_truncated_answer_is_visible_to_the_client(sample: Sample) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhalf"
    async with (
        raw_server(head) as upstream,
        start_service(gateway(sample, upstream), SETTINGS) as url,
        client_of(url) as http,
    ):
        with pytest.raises(aiohttp.ClientError):
            async with http.get("/v1/notes") as response:
                await response.read()


async def test_an_absolute_target_reaches_the_configured_service_only(
    http: aiohttp.ClientSession,
) -> None:
    url = http._base_url
    assert url is not None
    reader, writer = await asyncio.open_connection(url.host, url.port)
    request = (
        f"GET http://elsewhere.invalid/v1/notes?limit=1 HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {KEY}\r\nConnection: close\r\n\r\n"
    )
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"items":[0]' in answer
