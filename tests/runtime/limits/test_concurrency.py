"""The concurrency limit: slots, the queue, its deadline, and a server under overload."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from reverie.domain.core.errors import Overloaded
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.routes import Route
from reverie.runtime.limits.concurrency import (
    ConcurrencyLimiter,
    ConcurrencyLimits,
    ConcurrencyMetrics,
)
from reverie.runtime.service import start_service
from reverie.runtime.settings.settings import Settings
from tests.runtime.sample_service import GOOD, KEY, Sample, gateway, problem_of

HEADERS = {"Authorization": f"Bearer {KEY}"}


def _limiter(slots: int, queue: int, timeout: float = 10.0) -> ConcurrencyLimiter:
    metrics = ConcurrencyMetrics(CollectorRegistry())
    return ConcurrencyLimiter(ConcurrencyLimits(slots, queue, timeout), metrics, "self")


async def test_waiting_requests_get_slots_in_order_and_never_exceed_the_limit() -> None:
    limiter = _limiter(2, 10)
    order: list[int] = []
    running = 0

    async def request(number: int) -> None:
        nonlocal running
        async with limiter.acquire():
            running += 1
            assert running <= 2
            order.append(number)
            await asyncio.sleep(0.001)
            running -= 1

    await asyncio.gather(*(request(number) for number in range(12)))
    assert order == list(range(12))


async def test_a_full_queue_rejects_at_once() -> None:
    limiter = _limiter(1, 1)
    async with AsyncExitStack() as slots:
        await slots.enter_async_context(limiter.acquire())
        waiting = asyncio.create_task(slots.enter_async_context(limiter.acquire()))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="1 requests are under way and 1 wait") as caught:
            await slots.enter_async_context(limiter.acquire())
        assert 0.0 <= caught.value.retry_after <= 2.0
        waiting.cancel()


async def test_without_a_queue_free_slots_are_still_granted() -> None:
    limiter = _limiter(1, 0)
    for _ in range(2):
        async with limiter.acquire():
            with pytest.raises(Overloaded):
                await limiter.acquire().__aenter__()


async def test_late_and_cancelled_waiters_lose_no_slot() -> None:
    limiter = _limiter(1, 10, 0.01)
    async with limiter.acquire():
        with pytest.raises(Overloaded):
            await limiter.acquire().__aenter__()
        cancelled = asyncio.create_task(limiter.acquire().__aenter__())
        await asyncio.sleep(0)
        cancelled.cancel()
    for _ in range(3):
        async with limiter.acquire():
            pass


@asynccontextmanager
async def _slow_server(seconds: float, settings: Settings) -> AsyncIterator[aiohttp.ClientSession]:
    async def sleep(_: Call[None, None]) -> Reply:
        await asyncio.sleep(seconds)
        return Reply(204)

    sample = Sample()
    routes = [*sample.routes(), Route("GET", "/v1/slow", sleep)]
    async with (
        start_service(sample.service(routes=routes), settings) as url,
        aiohttp.ClientSession(
            url, headers=HEADERS, connector=aiohttp.TCPConnector(limit=0)
        ) as session,
    ):
        yield session


async def test_under_overload_every_request_is_answered_or_rejected_in_time() -> None:
    settings = Settings(max_concurrent_requests=8, request_queue=16, request_queue_timeout=10.0)
    async with _slow_server(0.1, settings) as http:

        async def get(path: str) -> tuple[int, float]:
            started = time.monotonic()
            async with http.get(path) as response:
                if response.status == 503:
                    assert (await problem_of(response))["code"] == "unavailable"
                    assert 1 <= int(response.headers["Retry-After"]) <= 2
                return response.status, time.monotonic() - started

        flood = [asyncio.create_task(get("/v1/slow")) for _ in range(200)]
        probes = [asyncio.create_task(get(path)) for path in ("/health", "/ready", "/metrics")]
        answers = await asyncio.gather(*flood)
        statuses = Counter(status for status, _ in answers)
        assert statuses[204] >= 24
        assert statuses[204] + statuses[503] == 200
        assert max(seconds for _, seconds in answers) < 15.0
        assert {status for status, _ in await asyncio.gather(*probes)} == {200}
        assert (await get("/v1/slow"))[0] == 204
        async with http.get("/metrics") as response:
            metrics = await response.text()
        assert f'reverie_requests_rejected_total{{target="self"}} {statuses[503]}.0' in metrics
        assert 'reverie_requests_in_progress{target="self"} 0.0' in metrics


async def test_a_wait_that_is_too_long_ends_with_503() -> None:
    settings = Settings(max_concurrent_requests=1, request_queue=5, request_queue_timeout=0.05)
    sample = Sample()
    async with (
        start_service(sample.service(), settings) as url,
        aiohttp.ClientSession(url, headers=HEADERS) as http,
    ):

        async def post() -> int:
            async with http.post("/v1/held", json=GOOD) as response:
                return response.status

        held = asyncio.create_task(post())
        await sample.entered.wait()
        assert await asyncio.gather(*(post() for _ in range(5))) == 5 * [503]
        sample.go.set()
        assert await held == 200


async def test_a_gateway_limits_each_service_separately_from_its_own_routes() -> None:
    sample = Sample()
    settings = Settings(max_concurrent_requests=1, request_queue=0)
    async with start_service(sample.service(), Settings()) as upstream:
        proxy = gateway(sample, upstream, "/v1/held", routes=sample.routes()[:1])
        async with (
            start_service(proxy, settings) as url,
            aiohttp.ClientSession(url, headers=HEADERS) as http,
        ):
            held = asyncio.create_task(http.post("/v1/held", json=GOOD))
            await sample.entered.wait()
            async with http.post("/v1/held", json=GOOD) as response:
                assert response.status == 503
                assert int(response.headers["Retry-After"]) >= 1
            async with http.post("/v1/notes", json=GOOD) as response:
                assert response.status == 201
            sample.go.set()
            async with await held as response:
                assert response.status == 200
            async with http.get("/metrics") as response:
                assert 'reverie_requests_rejected_total{target="ingest"} 1.0' in (
                    await response.text()
                )


async def test_a_slow_body_holds_a_slot_only_if_large_and_for_a_limited_time() -> None:
    settings = Settings(max_concurrent_requests=1, request_queue=0, request_timeout=0.5)
    sample = Sample()
    async with (
        start_service(sample.service(), settings) as url,
        aiohttp.ClientSession(url, headers=HEADERS) as http,
    ):

        async def notes_status() -> int:
            async with http.get("/v1/notes") as response:
                return response.status

        for size, refused in ((9, set()), (500_000, {503})):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            writer.write(
                f"POST /v1/notes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
                f"Content-Length: {size}\r\n\r\n{{".encode()
            )
            answer = asyncio.create_task(reader.readline())
            statuses = {200}
            while not answer.done():
                statuses.add(await notes_status())
            assert b" 503 " in await answer, "the request took too long"
            assert statuses == {200} | refused
            assert await notes_status() == 200
            writer.close()
