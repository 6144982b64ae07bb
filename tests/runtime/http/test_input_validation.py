"""Wrong bodies and parameters are named in the answer; paging works."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from reverie.runtime.service import start_service
from reverie.runtime.settings.settings import Settings
from tests.runtime.sample_service import BODY_LIMIT, GOOD, Sample, problem_of

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
    (b"[" * 2000, "nested deeper" if sys.version_info < (3, 13) else "line 1, column 2001"),
]


@pytest.mark.parametrize(("data", "told"), MALFORMED)
async def test_invalid_json_is_refused_with_its_position(
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
    ({"text": ""}, "text", "is empty"),
    ({"text": "  \n"}, "text", "is empty"),
    ({"text": 5}, "text", "should be a text"),
    ({"text": None}, "text", "should be a text"),
    ({"text": "a", "count": "3"}, "count", "a whole number"),
    ({"text": "a", "count": 1.5}, "count", "a whole number"),
    ({"text": "a", "count": True}, "count", "a whole number"),
    ({"text": "a", "txt": 1}, "txt", "unknown field; did you mean text?"),
    ({"text": "a", "zzz": 1}, "zzz", "unknown field"),
    ({"text": "a", "inner": {"level": 3, "more": 1}}, "inner.more", "unknown field"),
    ({"text": "a", "inner": {"level": 10}}, "inner.level", "less than or equal to 9"),
    ({"text": "a", "inner": []}, "inner", "object"),
    ({"text": "a", "tags": "x"}, "tags", "should be a list"),
    ({"text": "a", "tags": ["x", ""]}, "tags.1", "is empty"),
    ({"text": "a", "tags": ["a", "b", "c", "d"]}, "tags", "has too many items: at most 3"),
    ({"text": "a", "tags": ["t" * 65]}, "tags.0", "is too long: at most 64 characters"),
    ({"text": "a", "at": "2026-01-01T10:00:00"}, "at", "timezone, as 2026-01-31T10:00:00Z"),
    ({"text": "a", "at": "yesterday"}, "at", "no date and time"),
    ({"text": "a", "ref": "nope"}, "ref", "no full id"),
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
async def test_an_invalid_field_is_named_with_the_reason_and_nothing_is_done(
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


async def test_all_invalid_fields_are_listed_at_once(http: aiohttp.ClientSession) -> None:
    async with http.post("/v1/notes", json={"text": "", "count": "x", "zzz": 1}) as response:
        document = await problem_of(response)
    assert document["errors"] == [
        {"field": "text", "reason": "is empty"},
        {"field": "count", "reason": "should be a whole number"},
        {
            "field": "zzz",
            "reason": "unknown field; there are at, count, inner, meta, ref, tags, text",
        },
    ]


async def test_a_number_with_too_many_digits_is_a_client_error(
    http: aiohttp.ClientSession,
) -> None:
    async with http.post("/v1/notes", data=b'{"count": ' + b"9" * 4000 + b"}") as response:
        assert response.status == 422
    settings = Settings(body_limit=100_000)
    async with start_service(Sample().service(), settings) as url:
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
            yield b"a" * (BODY_LIMIT // 4)
        yield b'"}'

    whole = b'{"text": "' + b"a" * BODY_LIMIT + b'"}'
    async with http.post("/v1/notes", data=pieces() if chunked else whole) as response:
        document = await problem_of(response)
    assert (document["status"], document["code"], document["field"]) == (413, "too_large", "body")
    assert "body_limit" in document["detail"]
    assert sample.notes == []


async def test_a_compressed_body_is_decompressed_and_limited_by_its_full_size(
    http: aiohttp.ClientSession,
) -> None:
    packed = {"Content-Encoding": "gzip"}
    small = gzip.compress(json.dumps(GOOD).encode())
    async with http.post("/v1/notes", data=small, headers=packed) as response:
        assert response.status == 201
    bomb = gzip.compress(b'{"text": "' + b"a" * (BODY_LIMIT * 50) + b'"}')
    assert len(bomb) < BODY_LIMIT
    async with http.post("/v1/notes", data=bomb, headers=packed) as response:
        assert (await problem_of(response))["code"] == "too_large"


async def test_an_invalid_compressed_body_is_malformed(
    http: aiohttp.ClientSession,
) -> None:
    packed = {"Content-Encoding": "gzip", "Connection": "close"}
    async with http.post("/v1/notes", data=b"plainly not", headers=packed) as response:
        assert response.status == 400
    for packing in ("compress", "gzip, deflate"):
        packed = {"Content-Encoding": packing, "Connection": "close"}
        async with http.post("/v1/notes", json=GOOD, headers=packed) as response:
            document = await problem_of(response)
        assert (document["status"], document["code"]) == (400, "malformed")
        assert packing in document["detail"]


async def test_an_empty_body_is_an_empty_object(http: aiohttp.ClientSession) -> None:
    async with http.post("/v1/optional") as response:
        assert (response.status, (await response.json())["text"]) == (200, "none")


@pytest.mark.parametrize(
    ("query", "field", "reason"),
    [
        ("limit=0", "limit", "greater than or equal to 1"),
        ("limit=201", "limit", "less than or equal to 200"),
        ("limit=many", "limit", "a whole number"),
        ("limit=1&limit=2", "limit", "more than once"),
        ("limt=1", "limt", "did you mean limit?"),
        ("deep=perhaps", "deep", "true or false"),
        ("tag=a%00b", "tag.0", "NUL"),
        ("cursor=", "cursor", "is empty"),
        ("cursor=%25%25", "cursor", "not a cursor"),
        ("cursor=e30", "cursor", "not a cursor"),
        ("cursor=eyJudW1iZXIiOiAiMSJ9", "cursor", "not a cursor"),
        ("cursor=a", "cursor", "not a cursor"),
        ("cursor=%C3%A9", "cursor", "not a cursor"),
    ],
)
async def test_an_invalid_parameter_is_named(
    http: aiohttp.ClientSession, query: str, field: str, reason: str
) -> None:
    async with http.get(f"/v1/notes?{query}") as response:
        document = await problem_of(response)
    assert (document["status"], document["field"]) == (422, field)
    assert reason in document["detail"]


async def test_a_route_without_parameters_refuses_them(http: aiohttp.ClientSession) -> None:
    async with http.get("/v1/empty?x=1") as got:
        assert (await problem_of(got))["field"] == "x"


async def test_parameters_are_converted_and_lists_may_repeat(http: aiohttp.ClientSession) -> None:
    async with http.get("/v1/notes?limit=3&deep=true&tag=a&tag=b") as response:
        assert (await response.json())["items"] == [0, 1, 2]


@pytest.mark.parametrize("limit", ["4", "5"])
async def test_pages_continue_to_the_end(http: aiohttp.ClientSession, limit: str) -> None:
    seen: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        params = {"limit": limit} | ({"cursor": cursor} if cursor else {})
        async with http.get("/v1/notes", params=params) as response:
            page = await response.json()
        assert page["items"]
        seen += page["items"]
        cursor = page["next"]
    assert seen == list(range(10))


async def test_a_modified_cursor_is_refused(http: aiohttp.ClientSession) -> None:
    async with http.get("/v1/notes?limit=2") as response:
        cursor = (await response.json())["next"]
    for changed in (cursor[:-1], cursor + "A", cursor[::-1], f"x{cursor}"):
        async with http.get("/v1/notes", params={"cursor": changed}) as response:
            assert (await problem_of(response))["field"] == "cursor"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01 hello\r\n\r\n",
        b"GET /v1/notes HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /v1/notes HTTP/1.1\r\nHost: a\r\nContent-Length: ten\r\n\r\n",
    ],
)
async def test_bytes_that_are_not_http_are_answered_with_400(
    http: aiohttp.ClientSession, sent: bytes
) -> None:
    host, port = http._base_url.host, http._base_url.port  # type: ignore[union-attr]
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(sent)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
    assert b"Traceback" not in answer
