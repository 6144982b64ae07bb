"""Authentication, problem documents, health and metrics of a running service."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from reverie.domain.core.errors import Unavailable
from reverie.runtime.service import start_service
from reverie.runtime.settings.settings import Settings
from tests.runtime.sample_service import (
    GOOD,
    KEY,
    NARROW_KEY,
    OTHER_KEY,
    SECRET,
    Sample,
    gateway,
    problem_of,
)
from tests.support.in_memory_runtime import build_principal


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Basic {KEY}",
        KEY,
        f"Bearer {KEY}x",
        f"Bearer {KEY} {KEY}",
        "Bearer " + "a" * 5000,
        "Bearer schlüssel",
    ],
)
async def test_without_a_valid_key_every_request_is_refused(
    http: aiohttp.ClientSession, sample: Sample, header: str | None
) -> None:
    async with (
        aiohttp.ClientSession() as stranger,
        stranger.post(
            http._build_url("/v1/notes"),
            json=GOOD,
            headers={} if header is None else {"Authorization": header},
        ) as response,
    ):
        document = await problem_of(response)
    assert (document["status"], document["code"]) == (401, "unauthenticated")
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert sample.notes == []


async def test_the_wrong_scope_is_forbidden(
    http: aiohttp.ClientSession,
) -> None:
    narrow = {"Authorization": f"Bearer {NARROW_KEY}"}
    async with http.get("/v1/scope", headers=narrow) as response:
        document = await problem_of(response)
    assert (document["status"], document["code"]) == (403, "forbidden")
    assert "project/other" in document["detail"]
    async with http.get("/v1/scope") as response:
        assert response.status == 204


async def test_a_store_outage_is_not_reported_as_a_wrong_key(
    http: aiohttp.ClientSession, sample: Sample
) -> None:
    sample.keys.down = True
    async with http.post("/v1/notes", json=GOOD) as response:
        document = await problem_of(response)
    assert (document["status"], document["code"]) == (503, "unavailable")
    assert int(response.headers["Retry-After"]) >= 1


async def test_a_key_is_cached_and_works_while_the_store_is_down(
    http: aiohttp.ClientSession, sample: Sample
) -> None:
    for _ in range(3):
        async with http.post("/v1/notes", json=GOOD) as response:
            assert response.status == 201
    assert sample.keys.lookups == 1
    sample.keys.down = True
    async with http.post("/v1/notes", json=GOOD) as response:
        assert response.status == 201


async def test_a_new_key_works_at_once_after_it_was_refused(
    http: aiohttp.ClientSession, sample: Sample
) -> None:
    new = {"Authorization": "Bearer brand-new"}
    async with http.get("/v1/notes", headers=new) as response:
        assert response.status == 401
    sample.keys.add("brand-new", build_principal(3))
    async with http.get("/v1/notes", headers=new) as response:
        assert response.status == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1/nothing", 404, "not_found"),
        ("POST", "/v1/notes/x/y", 404, "not_found"),
        ("DELETE", "/v1/notes", 405, "method_not_allowed"),
        ("PROPFIND", "/v1/notes", 405, "method_not_allowed"),
        ("GET", "/v1/notes/no-uuid", 422, "invalid"),
        ("GET", "/v1/notes/%00", 422, "invalid"),
        ("GET", "/v1/notes/00000000-0000-7000-8000-000000000000", 404, "not_found"),
        ("GET", "/v1/big", 413, "too_large"),
        ("GET", "/v1/stuck", 503, "unavailable"),
        ("GET", "/v1/broken", 500, "internal"),
        ("GET", "/v1/misconfigured", 500, "internal"),
    ],
)
async def test_every_error_is_a_problem_document(
    http: aiohttp.ClientSession, method: str, path: str, status: int, code: str
) -> None:
    async with http.request(method, path) as response:
        document = await problem_of(response)
    assert (document["status"], document["code"]) == (status, code)
    assert ("Allow" in response.headers) == (status == 405)
    assert response.headers["Server"] == "reverie"
    assert SECRET not in json.dumps(document)


async def test_the_callers_trace_is_continued_and_returned(
    http: aiohttp.ClientSession,
) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    carried = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
    async with http.get("/v1/notes", headers=carried) as response:
        assert response.headers["X-Trace-Id"] == trace_id
        assert response.headers["traceparent"].startswith(f"00-{trace_id}-")
        assert not response.headers["traceparent"].startswith(f"00-{trace_id}-b7ad6b7169203331")


@pytest.mark.parametrize("broken", [None, "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
async def test_a_request_without_a_trace_begins_one(
    http: aiohttp.ClientSession, broken: str | None
) -> None:
    headers = {"traceparent": broken} if broken else {}
    seen = set()
    for _ in range(2):
        async with http.get("/v1/notes", headers=headers) as response:
            seen.add(response.headers["X-Trace-Id"])
    assert len(seen) == 2
    assert all(len(one) == 32 and int(one, 16) for one in seen)


async def test_work_after_the_reply_does_not_delay_the_reply(
    http: aiohttp.ClientSession, sample: Sample
) -> None:
    async with http.post("/v1/later", json=GOOD) as response:
        assert response.status == 200
        await response.read()
    await sample.entered.wait()
    assert sample.did == []
    sample.go.set()
    async with http.get("/health") as response:
        assert response.status == 200
    assert sample.did == ["hello"]


async def test_the_health_routes_need_no_key(sample: Sample) -> None:
    async with (
        start_service(sample.service(), Settings()) as url,
        aiohttp.ClientSession(url) as client,
    ):
        async with client.get("/health") as response:
            health = await response.json()
        async with client.get("/ready") as response:
            ready = (response.status, await response.json())
        async with client.head("/health") as response:
            assert response.status == 200
    assert (health["status"], health["service"]) == ("live", "ingest")
    assert health["version"]
    assert health["uptime"] >= 0
    assert ready == (200, {"status": "ready", "service": "ingest", "checks": {}})


async def test_readiness_names_what_fails_and_may_skip_what_all_replicas_share(
    sample: Sample,
) -> None:
    async def fine() -> None: ...

    async def down() -> None:
        raise Unavailable("Postgres", "is it running?")

    async def hangs() -> None:
        await asyncio.Event().wait()

    async def breaks() -> None:
        raise RuntimeError(SECRET)

    checks = {"bus": fine, "postgres": down, "model": hangs, "disk": breaks}
    service = sample.service(checks=checks)
    async with start_service(service, Settings()) as url, aiohttp.ClientSession(url) as client:
        async with client.get("/ready") as response:
            answer = await response.json()
        checks.update(model=fine, disk=fine)
        async with client.get("/ready?own=true") as own:
            assert (own.status, set((await own.json())["checks"])) == (
                200,
                {"bus", "model", "disk"},
            )
    assert response.status == 503
    assert answer["checks"]["bus"] == {"ok": True, "hint": None}
    assert answer["checks"]["postgres"]["hint"] == "Postgres does not answer: is it running?"
    assert "did not answer" in answer["checks"]["model"]["hint"]
    assert answer["checks"]["disk"]["hint"] == "RuntimeError"


async def test_metrics_count_requests_errors_and_durations_by_route(
    http: aiohttp.ClientSession,
) -> None:
    async with http.post("/v1/notes", json=GOOD):
        pass
    async with http.get("/v1/notes/no-uuid"):
        pass
    async with http.get("/some/random/path"):
        pass
    async with http.get("/metrics") as response:
        assert response.content_type == "text/plain"
        text = await response.text()
    assert 'reverie_http_requests_total{method="POST",route="/v1/notes",status="201"} 1.0' in text
    assert (
        'reverie_http_errors_total{code="invalid",method="GET",route="/v1/notes/{id}"} 1.0' in text
    )
    assert 'status="404"' in text
    assert 'route="unmatched"' in text
    assert 'reverie_http_request_seconds_count{method="POST",route="/v1/notes"} 1.0' in text
    assert "random" not in text


async def test_a_rate_limited_key_is_told_how_long_to_wait(sample: Sample) -> None:
    async with (
        start_service(sample.service(), Settings(rate_limit=3)) as url,
        start_service(gateway(sample, url), Settings()) as door,
        aiohttp.ClientSession(door, headers={"Authorization": f"Bearer {KEY}"}) as session,
    ):
        for left in (2, 1, 0):
            async with session.get("/v1/notes") as answer:
                assert answer.status == 200
                assert answer.headers["RateLimit-Policy"] == '"key";q=3;w=60'
                assert answer.headers["RateLimit"].startswith(f'"key";r={left};t=')
        async with session.get("/v1/notes") as answer:
            document = await problem_of(answer)
            assert (answer.status, document["code"]) == (429, "too_many")
            assert 1 <= int(answer.headers["Retry-After"]) <= 20
            assert answer.headers["RateLimit"].startswith('"key";r=0;')
        other = {"Authorization": f"Bearer {OTHER_KEY}"}
        async with session.get("/v1/notes", headers=other) as answer:
            assert answer.status == 200


async def test_a_long_answer_is_compressed_on_request(http: aiohttp.ClientSession) -> None:
    for length, asks, packed in (
        (1500, "gzip", "gzip"),
        (1500, "br, gzip;q=0.5", "gzip"),
        (1500, "gzip;q=0", None),
        (1500, "identity", None),
        (20, "gzip", None),
    ):
        text = "x" * length
        headers = {"Accept-Encoding": asks}
        async with http.post("/v1/notes", json={"text": text}, headers=headers) as answer:
            assert answer.headers.get("Content-Encoding") == packed
            assert (await answer.json())["text"] == text
            assert ("Vary" in answer.headers) == (length > 1024)
