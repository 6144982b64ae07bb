"""Malformed, oversized and unknown requests are refused and change nothing."""

from __future__ import annotations

import json
import os
from datetime import datetime
from itertools import product
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from reverie.contracts.memories.memories import RememberRequest
from tests.interfaces.invalid_input import (
    GOOD,
    MISSING,
    POSTS,
    REMEMBER,
    SHA,
    TURN,
    Place,
    problem,
)

DEEP = b"[" * 40 + b"]" * 40


def spoilt(path: str, text: bytes) -> bytes:
    """The good body of a route with `text`, raw JSON, in place of its first value."""
    first, *_ = GOOD[path]
    rest = json.dumps({k: v for k, v in GOOD[path].items() if k != first})[1:]
    return b'{"' + first.encode() + b'": ' + text + (b", " + rest.encode() if rest != "}" else b"}")


WRONG_VALUES = [
    b'"a\\u0000b"',
    b'"\\ud800"',
    b'{"a": ' + DEEP + b"}",
    b"1e999",
    b"9223372036854775808",
    b"true",
    b'"  \\n\\t "',
    b"{}",
]


async def test_every_post_refuses_a_body_that_is_not_its_own(place: Place) -> None:
    """The rules themselves are those of `tests/runtime/http/test_input_validation.py`."""

    def encode(**more: Any) -> list[tuple[str, bytes]]:
        filled = [(path, place.filled(GOOD[path])) for path in POSTS]
        return [(path, json.dumps({**body, **more}).encode()) for path, body in filled]

    for bodies, status, field in (
        (product(POSTS, [b"{", b"[" * 5000]), 400, None),
        (product(POSTS, [b"[]", b"null"]), 422, "body"),
        (encode(tenant=2), 422, "tenant"),
    ):
        async for case, document in place.all_refused(bodies):
            assert (document["status"], document.get("field")) == (status, field), case
    for key in ("", "x" * 256, "sch\u00f6n"):
        async for case, document in place.all_refused(encode(), {"Idempotency-Key": key}):
            assert (document["status"], document["field"]) == (422, "Idempotency-Key"), case


async def test_a_first_field_of_a_wrong_type_is_named(place: Place) -> None:
    bodies = [
        (path, place.filled(spoilt(path, text).decode()).encode())
        for path in POSTS
        for text in WRONG_VALUES
    ]
    async for case, document in place.all_refused(bodies):
        first = next(iter(GOOD[case[0]]))
        assert document["status"] == 422, case
        assert document["field"].split(".")[0] == first, (case, document)


async def test_a_body_over_the_limit_is_too_large(place: Place) -> None:
    for path in ("/v1/remember", "/v1/git/changes"):
        longest, setting = (
            (25, "large_body_limit") if path == "/v1/git/changes" else (1, "body_limit")
        )
        data = b'{"a": "' + b"x" * (longest * 1024 * 1024) + b'"}'
        document = await place.refused("POST", path, data)
        assert (document["status"], document["field"]) == (413, "body"), path
        assert setting in document["detail"], path


async def test_content_may_be_as_long_as_the_limit_and_not_one_byte_longer(place: Place) -> None:
    longest = "\u00e9" * 32_768
    over = json.dumps({"content": longest + "x"}, ensure_ascii=False).encode()
    document = await place.refused("POST", "/v1/remember", over)
    assert (document["status"], document["field"]) == (413, "content")
    assert "65537" in document["detail"]
    assert "content_limit" in document["detail"]
    asked = await place.refused(
        "POST", "/v1/recall", json.dumps({"query": longest + "x"}, ensure_ascii=False).encode()
    )
    assert (asked["status"], asked["field"]) == (413, "query")
    assert (await place.stack.post("/v1/remember", {"content": longest}))["status"] == "created"


async def test_a_time_with_any_offset_is_the_same_moment(place: Place) -> None:
    for offset in ("+17:10", "-23:59", "+15:59"):
        told = f"2020-03-01T12:00:00{offset}"
        body = {"content": f"Ferries go at noon, {offset}", "valid_from": told}
        made = await place.stack.post("/v1/remember", body)
        kept = await place.stack.get(f"/v1/memories/{made['id']}")
        assert datetime.fromisoformat(kept["valid_from"]) == datetime.fromisoformat(told)


async def test_a_missing_resource_is_not_found(place: Place) -> None:
    end = await place.refused("POST", f"/v1/sessions/{MISSING}/end", b"{}")
    turns = {"session": MISSING, "turns": [TURN]}
    appended = await place.refused("POST", "/v1/turns", json.dumps(turns).encode())
    memory = {**REMEMBER, "session": MISSING}
    of_session = await place.refused("POST", "/v1/remember", json.dumps(memory).encode())
    linked = {**REMEMBER, "edges": [{"to": MISSING, "type": "relates_to"}]}
    edge = await place.refused("POST", "/v1/remember", json.dumps(linked).encode())
    dream = await place.refused("POST", "/v1/dream", json.dumps({"session": MISSING}).encode())
    recall = {"query": "x", "session": MISSING}
    recalled = await place.refused("POST", "/v1/recall", json.dumps(recall).encode())
    read = await place.refused("GET", f"/v1/memories/{MISSING}")
    listed = await place.refused("GET", f"/v1/sessions/{MISSING}/turns")
    context = await place.refused("GET", f"/v1/context?session={MISSING}")
    found = [end, appended, of_session, dream, recalled, read, listed, context]
    assert [one["status"] for one in found] == [404] * len(found)
    assert (edge["status"], edge["field"]) == (422, "edges")


async def test_an_unknown_route_is_reported(place: Place) -> None:
    for method, path, status in (
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/remembered", 404),
        ("POST", "/v1/remember/other", 404),
        ("GET", "/v1/remember", 405),
        ("DELETE", "/v1/turns", 405),
        ("PUT", "/v1/recall", 405),
        ("POST", "/v1/memories", 405),
        ("PATCH", "/v1/recall", 405),
    ):
        assert (await place.refused(method, path, b"{}"))["status"] == status, (method, path)


async def test_valid_items_of_a_batch_are_stored_and_invalid_ones_explained_in_order(
    place: Place,
) -> None:
    good = [f"batch item {n}" for n in range(4)]
    items: list[Any] = [
        {"content": good[0]},
        {"content": "", "tags": "x"},
        {"content": good[1], "kind": "file"},
        {"content": good[1]},
        {"content": "x" * 65_537},
        {"content": "x", "edges": [{"to": MISSING, "type": "led_to"}]},
        {"content": "x", "session": MISSING},
        {"content": good[2], "key": "k1"},
        {"content": "another for the key", "key": "k1"},
        {"content": good[0]},
        {"content": "x", "scope": "nowhere"},
        {"content": good[3], "metadata": {"n": 10**30}},
    ]
    answer = await place.stack.post("/v1/remember/batch", {"items": items})
    said = [(one["status"], one.get("field", "")) for one in answer["items"]]
    assert said == [
        ("created", ""),
        (422, "items.1.content"),
        (422, "items.2.kind"),
        ("created", ""),
        (413, "items.4.content"),
        (422, "items.5.edges"),
        (404, None),
        ("created", ""),
        (409, None),
        ("duplicate", ""),
        (422, "items.10.scope"),
        ("created", ""),
    ]
    assert answer["items"][9]["id"] == answer["items"][0]["id"]
    ids = [one["id"] for one in answer["items"] if one["status"] == "created"]
    details = [await place.stack.get(f"/v1/memories/{one}") for one in ids]
    assert [one["content"] for one in details] == good
    assert details[-1]["metadata"] == {"n": 10**30}


async def test_an_item_that_closes_a_causal_circle_is_refused_alone(place: Place) -> None:
    cause = (await place.stack.post("/v1/remember", {"content": "the cause"}))["id"]
    told = [{"to": cause, "type": "caused_by"}, {"to": cause, "type": "led_to"}]
    items = [
        {"content": "before"},
        {"content": "in a circle", "edges": told},
        {"content": "after", "edges": told[:1]},
    ]
    answer = await place.stack.post("/v1/remember/batch", {"items": items})
    assert [one["status"] for one in answer["items"]] == ["created", 422, "created"]
    assert answer["items"][1]["field"] == "items.1.edges"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["global", "project/shop", MISSING, SHA, "$session", "$memory", "led_to"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def almost_good(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """The good body of a route with one or two of its values replaced by anything."""
    path = draw(st.sampled_from(POSTS))
    body = json.loads(json.dumps(GOOD[path]))
    for _ in range(draw(st.integers(1, 2))):
        owner = body
        name = draw(st.sampled_from([*owner, *FIELDS[path]]))
        while isinstance(owner.get(name), list) and owner[name] and draw(st.booleans()):
            if not isinstance(owner[name][0], dict) or not owner[name][0]:
                break
            owner = owner[name][0]
            name = draw(st.sampled_from(sorted(owner)))
        owner[name] = draw(json_values)
    return path, body


FIELDS = {
    "/v1/remember": sorted(RememberRequest.model_fields),
    "/v1/remember/batch": ["items"],
    "/v1/turns": ["turns", "session"],
    "/v1/sessions/start": ["user", "branch", "external_id"],
    "/v1/sessions/$session/end": ["summary"],
    "/v1/recall": ["scopes", "limit", "budget_tokens", "depth", "kinds", "include", "session"],
    "/v1/dream": ["session"],
    "/v1/git/changes": ["before", "files", "commits"],
}


BODIES = int(os.environ.get("REVERIE_TEST_EXAMPLES", "50"))


@pytest.fixture(scope="module")
def bodies() -> list[tuple[str, dict[str, Any]]]:
    """Made before a system runs beside: it would disturb the order of random numbers."""
    made: list[tuple[str, dict[str, Any]]] = []

    @settings(
        max_examples=BODIES, deadline=None, derandomize=True, database=None, phases=[Phase.generate]
    )
    @given(almost_good())
    def collect(one: tuple[str, dict[str, Any]]) -> None:
        made.append(one)

    collect()
    return made


async def test_no_body_breaks_a_service_and_what_is_accepted_can_be_read_again(
    bodies: list[tuple[str, dict[str, Any]]], place: Place
) -> None:
    for path, body in bodies:
        data = json.dumps(place.filled(body)).encode()
        status, content_type, answer = await place.send("POST", path, data)
        if status >= 300:
            problem(status, content_type, answer)
    await place.settled()
    for path in ("/v1/memories", "/v1/dreams", "/v1/stale", "/v1/sessions/$session/turns"):
        await place.stack.walked(place.filled(path), 200)
    assert (await place.stack.get("/v1/context"))["markdown"]
