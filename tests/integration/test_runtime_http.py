"""A real server answers what is right, what is wrong, and who may ask."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from reverie.domain.errors import Unavailable
from reverie.runtime.service import running
from reverie.runtime.settings import Settings
from reverie.testing.keys import principal
from tests.integration.runtime_sample import (
    ADMIN_KEY,
    KEY,
    NARROW_KEY,
    OTHER_KEY,
    SECRET,
    Sample,
)

LIMIT = 4096
GOOD = {"text": "hello"}


@pytest.fixture
def sample() -> Sample:
    return Sample()


@pytest.fixture
async def http(sample: Sample) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the running sample, with the writer's key."""
    settings = Settings(body_limit=LIMIT, request_timeout=0.5, key_cache_seconds=60)
    async with (
        running(sample.service(), settings) as url,
        aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {KEY}"}) as session,
    ):
        yield session


async def problem_of(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The problem document of an answer, checked for what all of them have."""
    assert response.content_type == "application/problem+json"
    document: dict[str, Any] = json.loads(await response.read())
    assert document["status"] == response.status
    assert document["type"] == f"urn:reverie:problem:{document['code']}"
    assert document["trace_id"] == response.headers["X-Trace-Id"]
    assert "Traceback" not in document["detail"]
    return document


async def test_a_valid_body_reaches_the_handler_and_its_answer_the_client(
    http: aiohttp.ClientSession, sample: Sample
) -> None:
    async with http.post("/v1/notes", json=GOOD) as response:
        assert response.status == 201
        assert await response.json() == {"number": 1, "text": "hello", "tenant": "tenant-1"}
    assert sample.notes == ["hello"]


MALFORMED = [
    (b'{"text": ', "line 1, column 10"),
    (b'{"text": "a",\n "count": }', "line 2, column 11"),
    (b"{'text': 'a'}", "line 1, column 2"),
    (b'{"text": "a"} trailing', "line 1, column 15"),
    (b'{"text": "a", "count": NaN}', "NaN is no JSON number"),
    (b'{"text": "a", "count": -Infinity}', "-Infinity is no JSON number"),
    (b"\xff\xfe\x00", "line 1, column 1"),
    (b'{"text": "a\nb"}', "Invalid control character"),
    (b'{"meta": ' + b'{"a": ' * 500, "line 1, column 3010"),
    (b"[" * 2000, "nested deeper"),
]


@pytest.mark.parametrize(("data", "told"), MALFORMED)
async def test_a_body_that_is_no_json_is_refused_with_the_place(
    http: aiohttp.ClientSession, sample: Sample, data: bytes, told: str
) -> None:
    async with http.post("/v1/notes", data=data) as response:
        document = await problem_of(response)
    assert (document["status"], document["code"]) == (400, "malformed")
    assert told in document["detail"]
    assert sample.notes == []


INVALID: list[tuple[bytes | dict[str, Any], str, str]] = [
    (b"", "text", "is required"),
    ({}, "text", "is required"),
    ({"text": ""}, "text", "at least 1 character"),
    ({"text": "  \n"}, "text", "at least 1 character"),
    ({"text": 5}, "text", "valid string"),
    ({"text": None}, "text", "valid string"),
    ({"text": "a", "count": "3"}, "count", "valid integer"),
    ({"text": "a", "count": 1.5}, "count", "valid integer"),
    ({"text": "a", "count": True}, "count", "valid integer"),
    ({"text": "a", "txt": 1}, "txt", "unknown field; did you mean text?"),
    ({"text": "a", "zzz": 1}, "zzz", "unknown field"),
    ({"text": "a", "inner": {"level": 3, "more": 1}}, "inner.more", "unknown field"),
    ({"text": "a", "inner": {"level": 10}}, "inner.level", "less than or equal to 9"),
    ({"text": "a", "inner": []}, "inner", "object"),
    ({"text": "a", "tags": "x"}, "tags", "valid array"),
    ({"text": "a", "tags": ["x", ""]}, "tags.1", "at least 1 character"),
    ({"text": "a", "tags": ["a", "b", "c", "d"]}, "tags", "at most 3 items"),
    ({"text": "a", "at": "2026-01-01T10:00:00"}, "at", "timezone"),
    ({"text": "a", "at": "yesterday"}, "at", "valid datetime"),
    ({"text": "a", "ref": "nope"}, "ref", "valid UUID"),
    (b'["text"]', "body", "object"),
    (b'"text"', "body", "object"),
    (b"null", "body", "object"),
    (b'{"text": "a\\u0000b"}', "text", "NUL"),
    (b'{"text": "a", "meta": {"x": ["ok", "b\\u0000"]}}', "meta.x.1", "NUL"),
    (b'{"text": "a", "meta": {"k\\u0000": 1}}', "meta", "NUL"),
    (b'{"text": "a", "\\u0000": 1}', "body", "NUL"),
    (b'{"text": "a\xffb"}', "text", "not valid UTF-8"),
    (b'{"text": "a", "meta": {"\xff": 1}}', "meta", "not valid UTF-8"),
    (b'{"text": "\\ud800"}', "text", "not valid UTF-8"),
    (b'{"text": "a", "meta": {"x": 1e999}}', "meta.x", "out of range"),
    (b'{"text": "a", "meta": {"x": ' + b"[" * 40 + b"]" * 40 + b"}}", "meta.x.0.0", "nested"),
]


@pytest.mark.parametrize(("body", "field", "reason"), INVALID)
async def test_a_wrong_field_is_named_with_the_reason_and_nothing_is_done(
    http: aiohttp.ClientSession,
    sample: Sample,
    body: bytes | dict[str, Any],
    field: str,
    reason: str,
) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with http.post("/v1/notes", data=data) as response:
        document = await problem_of(response)
    assert (document["status"], document["code"]) == (422, "invalid")
    assert document["field"] == field or document["field"].startswith(f"{field}.")
    assert reason in document["detail"]
    assert sample.notes == []


async def test_all_wrong_fields_are_listed_at_once(http: aiohttp.ClientSession) -> None:
    async with http.post("/v1/notes", json={"count": "x", "zzz": 1}) as response:
        document = await problem_of(response)
    assert document["errors"] == [
        {"field": "text", "reason": "is required"},
        {"field": "count", "reason": "input should be a valid integer"},
        {"field": "zzz", "reason": "unknown field"},
    ]


async def test_a_number_with_too_many_digits_is_no_fault_of_ours(
    http: aiohttp.ClientSession,
) -> None:
    async with http.post("/v1/notes", data=b'{"count": ' + b"9" * 4000 + b"}") as response:
        assert response.status == 422
    settings = Settings(body_limit=100_000)
    async with running(Sample().service(), settings) as url:
        data = b'{"text": "a", "count": ' + b"9" * 5000 + b"}"
        async with http.post(f"{url}/v1/notes", data=data) as response:
            document = await problem_of(response)
    assert document["status"] == 400
    assert "set_int_max_str_digits" not in document["detail"]


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_refused(
    http: aiohttp.ClientSession, sample: Sample, chunked: bool
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"text": "'
        for _ in range(8):
            yield b"a" * (LIMIT // 4)
        yield b'"}'

    whole = b'{"text": "' + b"a" * LIMIT + b'"}'
    async with http.post("/v1/notes", data=pieces() if chunked else whole) as response:
        document = await problem_of(response)
    assert (document["status"], document["code"], document["field"]) == (413, "too_large", "body")
    assert "body_limit" in document["detail"]
    assert sample.notes == []


async def test_a_packed_body_is_unpacked_and_its_size_counts_unpacked(
    http: aiohttp.ClientSession,
) -> None:
    packed = {"Content-Encoding": "gzip"}
    small = gzip.compress(json.dumps(GOOD).encode())
    async with http.post("/v1/notes", data=small, headers=packed) as response:
        assert response.status == 201
    bomb = gzip.compress(b'{"text": "' + b"a" * (LIMIT * 50) + b'"}')
    assert len(bomb) < LIMIT
    async with http.post("/v1/notes", data=bomb, headers=packed) as response:
        assert (await problem_of(response))["code"] == "too_large"


async def test_a_body_that_claims_to_be_packed_and_is_not_is_malformed(
    http: aiohttp.ClientSession,
) -> None:
    packed = {"Content-Encoding": "gzip"}
    async with http.post("/v1/notes", data=b"plainly not", headers=packed) as response:
        assert response.status == 400


async def test_an_empty_body_stands_for_one_without_fields(http: aiohttp.ClientSession) -> None:
    async with http.post("/v1/optional") as response:
        assert (response.status, (await response.json())["text"]) == (200, "none")


@pytest.mark.parametrize(
    ("query", "field", "reason"),
    [
        ("limit=0", "limit", "greater than or equal to 1"),
        ("limit=201", "limit", "less than or equal to 200"),
        ("limit=many", "limit", "valid integer"),
        ("limit=1&limit=2", "limit", "more than once"),
        ("limt=1", "limt", "did you mean limit?"),
        ("deep=perhaps", "deep", "valid boolean"),
        ("tag=a%00b", "tag.0", "NUL"),
        ("cursor=", "cursor", "at least 1 character"),
        ("cursor=%25%25", "cursor", "not a cursor"),
        ("cursor=e30", "cursor", "not a cursor"),
        ("cursor=eyJudW1iZXIiOiAiMSJ9", "cursor", "not a cursor"),
        ("cursor=a", "cursor", "not a cursor"),
        ("cursor=%C3%A9", "cursor", "not a cursor"),
    ],
)
async def test_a_wrong_parameter_is_named(
    http: aiohttp.ClientSession, query: str, field: str, reason: str
) -> None:
    async with http.get(f"/v1/notes?{query}") as response:
        document = await problem_of(response)
    assert (document["status"], document["field"]) == (422, field)
    assert reason in document["detail"]


async def test_a_route_without_parameters_refuses_them(http: aiohttp.ClientSession) -> None:
    async with http.get("/v1/admin?x=1", headers={"Authorization": f"Bearer {ADMIN_KEY}"}) as got:
        assert (await problem_of(got))["field"] == "x"


async def test_parameters_are_converted_and_lists_may_repeat(http: aiohttp.ClientSession) -> None:
    async with http.get("/v1/notes?limit=3&deep=true&tag=a&tag=b") as response:
        assert (await response.json())["items"] == [0, 1, 2]


async def test_pages_follow_one_another_to_the_end(http: aiohttp.ClientSession) -> None:
    seen: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        params = {"limit": "4"} | ({"cursor": cursor} if cursor else {})
        async with http.get("/v1/notes", params=params) as response:
            page = await response.json()
        seen += page["items"]
        cursor = page["next"]
    assert seen == list(range(10))


async def test_a_cursor_that_was_changed_is_refused(http: aiohttp.ClientSession) -> None:
    async with http.get("/v1/notes?limit=2") as response:
        cursor = (await response.json())["next"]
    for changed in (cursor[:-1], cursor + "A", cursor[::-1], f"x{cursor}"):
        async with http.get("/v1/notes", params={"cursor": changed}) as response:
            assert (await problem_of(response))["field"] == "cursor"


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
async def test_without_a_valid_key_nothing_opens(
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


async def test_the_wrong_role_and_the_wrong_scope_are_forbidden(
    http: aiohttp.ClientSession,
) -> None:
    async with http.get("/v1/admin") as response:
        assert (await problem_of(response))["status"] == 403
    narrow = {"Authorization": f"Bearer {NARROW_KEY}"}
    async with http.get("/v1/scope", headers=narrow) as response:
        document = await problem_of(response)
    assert (document["status"], document["code"]) == (403, "forbidden")
    assert "project/other" in document["detail"]
    async with http.get("/v1/scope") as response:
        assert response.status == 204


async def test_a_store_that_is_down_is_not_a_wrong_key(
    http: aiohttp.ClientSession, sample: Sample
) -> None:
    sample.keys.down = True
    async with http.post("/v1/notes", json=GOOD) as response:
        document = await problem_of(response)
    assert (document["status"], document["code"]) == (503, "unavailable")
    assert int(response.headers["Retry-After"]) >= 1


async def test_a_key_is_looked_up_once_and_works_while_the_store_is_down(
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
    sample.keys.add("brand-new", principal(3))
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
    assert SECRET not in json.dumps(document)


async def test_the_trace_of_the_caller_goes_on_and_comes_back(
    http: aiohttp.ClientSession,
) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    carried = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
    async with http.get("/v1/notes", headers=carried) as response:
        assert response.headers["X-Trace-Id"] == trace_id
        assert response.headers["traceparent"].startswith(f"00-{trace_id}-")
        assert not response.headers["traceparent"].startswith(f"00-{trace_id}-b7ad6b7169203331")


@pytest.mark.parametrize("broken", [None, "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
async def test_without_a_trace_each_request_begins_one(
    http: aiohttp.ClientSession, broken: str | None
) -> None:
    headers = {"traceparent": broken} if broken else {}
    seen = set()
    for _ in range(2):
        async with http.get("/v1/notes", headers=headers) as response:
            seen.add(response.headers["X-Trace-Id"])
    assert len(seen) == 2
    assert all(len(one) == 32 and int(one, 16) for one in seen)


async def test_no_header_tells_what_runs_inside(http: aiohttp.ClientSession) -> None:
    for path in ("/health", "/v1/nothing"):
        async with http.get(path) as response:
            assert response.headers["Server"] == "reverie"


async def test_work_after_the_reply_does_not_hold_the_reply(
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


async def test_leaving_waits_for_work_after_replies() -> None:
    sample = Sample()
    async with running(sample.service(), Settings()) as url, aiohttp.ClientSession() as client:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with client.post(f"{url}/v1/later", json=GOOD, headers=headers) as response:
            assert response.status == 200
        await sample.entered.wait()
        asyncio.get_running_loop().call_soon(sample.go.set)
    assert sample.did == ["hello"]


async def test_the_health_routes_need_no_key(sample: Sample) -> None:
    async with running(sample.service(), Settings()) as url, aiohttp.ClientSession(url) as client:
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


async def test_readiness_names_what_fails_and_what_to_do(sample: Sample) -> None:
    async def fine() -> None: ...

    async def down() -> None:
        raise Unavailable("NATS", "is it running?")

    async def hangs() -> None:
        await asyncio.Event().wait()

    async def breaks() -> None:
        raise RuntimeError(SECRET)

    checks = {"postgres": fine, "nats": down, "model": hangs, "disk": breaks}
    service = sample.service(checks=checks)
    async with (
        running(service, Settings()) as url,
        aiohttp.ClientSession(url) as client,
        client.get("/ready") as response,
    ):
        answer = await response.json()
    assert response.status == 503
    assert answer["checks"]["postgres"] == {"ok": True, "hint": None}
    assert answer["checks"]["nats"]["hint"] == "NATS does not answer: is it running?"
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


async def test_idempotent_posts_of_ten_at_once_take_effect_once(
    http: aiohttp.ClientSession, sample: Sample
) -> None:
    async def post() -> tuple[int, bool]:
        headers = {"Idempotency-Key": "k"}
        async with http.post("/v1/held", json=GOOD, headers=headers) as response:
            if response.status == 409:
                assert int(response.headers["Retry-After"]) >= 1
                assert (await problem_of(response))["code"] == "conflict"
                sample.go.set()
            return response.status, "Idempotent-Replayed" in response.headers

    outcomes = await asyncio.gather(*(post() for _ in range(10)))
    assert sample.notes == ["hello"]
    assert outcomes.count((200, False)) == 1
    assert {status for status, _ in outcomes} == {200, 409}
    assert await post() == (200, True)


async def test_a_replay_is_the_first_answer_word_for_word(
    http: aiohttp.ClientSession, sample: Sample
) -> None:
    headers = {"Idempotency-Key": "k"}
    bodies = []
    for _ in range(2):
        async with http.post("/v1/notes", json=GOOD, headers=headers) as response:
            assert (response.status, response.content_type) == (201, "application/json")
            bodies.append(await response.read())
    assert response.headers["Idempotent-Replayed"] == "true"
    assert bodies[0] == bodies[1]
    assert sample.notes == ["hello"]


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/notes", {"text": "other"}), ("/v1/optional", None), ("/v1/later", GOOD)],
)
async def test_the_same_key_with_another_request_is_refused(
    http: aiohttp.ClientSession, path: str, body: dict[str, Any] | None
) -> None:
    headers = {"Idempotency-Key": "k"}
    async with http.post("/v1/notes", json=GOOD, headers=headers) as response:
        assert response.status == 201
    async with http.post(path, json=body, headers=headers) as response:
        document = await problem_of(response)
    assert (document["status"], document["code"]) == (422, "idempotency_mismatch")


async def test_the_same_key_of_another_holder_is_another_request(
    http: aiohttp.ClientSession,
) -> None:
    tenants = []
    for key in (KEY, OTHER_KEY, ADMIN_KEY):
        headers = {"Idempotency-Key": "k", "Authorization": f"Bearer {key}"}
        async with http.post("/v1/notes", json=GOOD, headers=headers) as response:
            assert "Idempotent-Replayed" not in response.headers
            tenants.append((await response.json())["tenant"])
    assert tenants == ["tenant-1", "tenant-2", "tenant-1"]


async def test_a_request_that_failed_leaves_its_key_free(
    http: aiohttp.ClientSession, sample: Sample
) -> None:
    headers = {"Idempotency-Key": "k"}
    async with http.post("/v1/held", json=GOOD, headers=headers) as response:
        assert (await problem_of(response))["status"] == 503
    sample.go.set()
    async with http.post("/v1/held", json=GOOD, headers=headers) as response:
        assert response.status == 200
    async with http.post("/v1/notes", json={}, headers={"Idempotency-Key": "n"}) as response:
        assert response.status == 422
    async with http.post("/v1/notes", json=GOOD, headers={"Idempotency-Key": "n"}) as response:
        assert response.status == 201


@pytest.mark.parametrize("key", ["", "a" * 256, "ключ"])
async def test_an_idempotency_key_of_the_wrong_form_is_named(
    http: aiohttp.ClientSession, key: str
) -> None:
    async with http.post("/v1/notes", json=GOOD, headers={"Idempotency-Key": key}) as response:
        assert (await problem_of(response))["field"] == "Idempotency-Key"


async def test_bytes_that_are_no_http_are_refused_without_a_stack_trace(
    http: aiohttp.ClientSession,
) -> None:
    host, port = http._base_url.host, http._base_url.port  # type: ignore[union-attr]
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"\x16\x03\x01 hello\r\n\r\n")
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
    assert b"Traceback" not in answer
