"""Whatever is sent, the answer names what is wrong, nothing is stored and nothing breaks."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from yarl import URL

from reverie.testing import servers
from reverie.testing.models import model_home
from tests.stack import Stack, eventually, running_stack
from tests.tables import Tables

pytestmark = pytest.mark.asyncio(loop_scope="module")

INSIDE = ("Traceback", "asyncpg", "psycopg", "SQLSTATE", "pydantic", "relation ", "libs/", 'File "')
"""What only somebody who sees our inside could say."""

MISSING = str(uuid4())
SHA = "a" * 40
DEEP = b"[" * 40 + b"]" * 40


@dataclass(frozen=True)
class Place:
    """A running system with one session and one memory in it."""

    stack: Stack
    tables: Tables
    session: str
    memory: str

    def filled(self, value: Any) -> Any:
        """The value with `$session` and `$memory` replaced by what stands."""
        if isinstance(value, str):
            return value.replace("$session", self.session).replace("$memory", self.memory)
        if isinstance(value, list):
            return [self.filled(one) for one in value]
        if isinstance(value, dict):
            return {self.filled(key): self.filled(one) for key, one in value.items()}
        return value

    async def settled(self) -> None:
        """Returns once the slow path has nothing left to write."""

        async def still() -> bool:
            return self.tables.idle()

        await eventually(still)

    async def send(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> tuple[int, str, bytes]:
        """Status, content type and body of the answer."""
        auth = {"Authorization": f"Bearer {self.stack.key}", **headers}
        url = URL(self.stack.url + self.filled(path), encoded=True)
        sent = None if data is None else BytesIO(data)
        async with self.stack.http.request(method, url, data=sent, headers=auth) as answer:
            return answer.status, answer.content_type, await answer.read()

    async def refused(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> dict[str, Any]:
        """The problem document of a call that must fail and leave no row behind."""
        await self.settled()
        before = self.tables.counts()
        answer = await self.send(method, path, data, headers)
        assert self.tables.counts() == before
        return problem(*answer)


def problem(status: int, content_type: str, body: bytes) -> dict[str, Any]:
    """The document of a refusal, checked for what all of them have."""
    text = body.decode()
    assert 400 <= status < 500, (status, text)
    assert content_type == "application/problem+json"
    document: dict[str, Any] = json.loads(text)
    assert document["status"] == status
    assert document["type"] == f"urn:reverie:problem:{document['code']}"
    assert document["trace_id"]
    assert not [word for word in INSIDE if word in text], text
    return document


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(test_run: servers.TestRun) -> AsyncIterator[Place]:
    """One system for all of this file: what is refused leaves no trace for the next test."""
    with servers.fresh_database(test_run) as database, servers.own_nats(test_run) as nats:
        async with running_stack(database, nats.url, model_home()) as stack:
            started = await stack.post("/v1/sessions/start", {"agent": "a", "project": "shop"})
            kept = await stack.post("/v1/remember", {"content": "what stands"})
            with closing(Tables(database.admin_url, tenant=1)) as tables:
                assert tables.counts()["memory"] == tables.counts()["session"] == 1
                yield Place(stack, tables, started["session"], kept["id"])


REMEMBER = {"content": "a thing to know", "scope": "project/shop"}
TURN = {"role": "user", "content": "hello"}
CHANGE: dict[str, Any] = {
    "project": "shop",
    "branch": "main",
    "after": SHA,
    "commits": [{"sha": SHA, "subject": "s", "committed_at": "2026-01-01T00:00:00Z"}],
    "files": [{"path": "src/a.py", "status": "modified", "hunks": [[1, 1, 1, 2]]}],
}
GOOD: dict[str, dict[str, Any]] = {
    "/v1/remember": REMEMBER,
    "/v1/remember/batch": {"items": [REMEMBER]},
    "/v1/turns": {"session": "$session", "turns": [TURN]},
    "/v1/sessions/start": {"agent": "claude", "project": "shop"},
    "/v1/sessions/$session/end": {"summary": "it went well"},
    "/v1/recall": {"query": "what stands?"},
    "/v1/dream": {"scope": "project/shop"},
    "/v1/git/changes": CHANGE,
}
POSTS = sorted(GOOD)


def spoilt(path: str, text: bytes) -> bytes:
    """The good body of a route with `text`, raw JSON, in place of its first value."""
    first, *_ = GOOD[path]
    rest = json.dumps({k: v for k, v in GOOD[path].items() if k != first})[1:]
    return b'{"' + first.encode() + b'": ' + text + (b", " + rest.encode() if rest != "}" else b"}")


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"{'a': 1}",
        b'{"a": 1} more',
        b"\xff\xfe\x00{",
        b'{"a": NaN}',
        b"nul",
        b"[" * 5000,
        b'{"a": "line\nbreak"}',
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
)
async def test_what_is_no_json_is_malformed(place: Place, path: str, data: bytes) -> None:
    document = await place.refused("POST", path, data)
    assert (document["status"], document["code"]) == (400, "malformed")


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("data", [b"[]", b'"text"', b"5", b"null", b"true"])
async def test_a_body_that_is_no_object_is_invalid(place: Place, path: str, data: bytes) -> None:
    document = await place.refused("POST", path, data)
    assert (document["status"], document["field"]) == (422, "body")


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    "text",
    [
        b'"a\\u0000b"',
        b'"a\xffb"',
        b'"\\ud800"',
        b'{"a": ' + DEEP + b"}",
        b"1e999",
        b"12",
        b"9223372036854775808",
        b"true",
        b'""',
        b'"  \\n\\t "',
        b"{}",
    ],
)
async def test_a_first_field_of_a_wrong_kind_is_named(place: Place, path: str, text: bytes) -> None:
    document = await place.refused(
        "POST",
        path,
        place.filled(spoilt(path, text).decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        ),
    )
    first = next(iter(GOOD[path]))
    assert document["status"] == 422
    assert document["field"].split(".")[0] == first, document


@pytest.mark.parametrize("path", POSTS)
async def test_an_unknown_field_is_named(place: Place, path: str) -> None:
    body = place.filled({**GOOD[path], "tenant": 2})
    document = await place.refused("POST", path, json.dumps(body).encode())
    assert (document["status"], document["field"]) == (422, "tenant")
    assert "unknown field" in document["detail"]


@pytest.mark.parametrize("path", POSTS)
async def test_a_body_over_the_limit_is_too_large(place: Place, path: str) -> None:
    data = b'{"a": "' + b"x" * (1024 * 1024) + b'"}'
    document = await place.refused("POST", path, data)
    assert (document["status"], document["field"]) == (413, "body")
    assert "body_limit" in document["detail"]


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("key", ["", "x" * 256, "sch\u00f6n"])
async def test_an_idempotency_key_of_a_wrong_form_is_named(
    place: Place, path: str, key: str
) -> None:
    data = json.dumps(place.filled(GOOD[path])).encode()
    document = await place.refused("POST", path, data, {"Idempotency-Key": key})
    assert (document["status"], document["field"]) == (422, "Idempotency-Key")


WRONG_MEMORIES: list[tuple[dict[str, Any], str]] = [
    ({"content": None}, "content"),
    ({"content": ["a"]}, "content"),
    ({"content": "\u2003\u00a0"}, "content"),
    ({"scope": "project/../x"}, "scope"),
    ({"scope": "project/a b"}, "scope"),
    ({"scope": "project/*"}, "scope"),
    ({"scope": "nowhere/x"}, "scope"),
    ({"scope": "project/" + "x" * 65}, "scope"),
    ({"scope": ""}, "scope"),
    ({"scope": " "}, "scope"),
    ({"scope": 1}, "scope"),
    ({"kind": "file"}, "kind"),
    ({"kind": "entity"}, "kind"),
    ({"kind": "rumour"}, "kind"),
    ({"kind": ""}, "kind"),
    ({"kind": 3}, "kind"),
    ({"key": ""}, "key"),
    ({"key": "x" * 201}, "key"),
    ({"tags": "a"}, "tags"),
    ({"tags": [""]}, "tags.0"),
    ({"tags": ["x" * 65]}, "tags.0"),
    ({"tags": [str(n) for n in range(10_000)]}, "tags"),
    ({"session": "nope"}, "session"),
    ({"confidence": 2}, "confidence"),
    ({"confidence": -0.1}, "confidence"),
    ({"confidence": "high"}, "confidence"),
    ({"confidence": 10**400}, "confidence"),
    ({"pinned": "yes"}, "pinned"),
    ({"valid_from": "2026-01-01T00:00:00"}, "valid_from"),
    ({"valid_from": "2026-01-01"}, "valid_from"),
    ({"valid_from": "yesterday"}, "valid_from"),
    ({"valid_from": 1767225600}, "valid_from"),
    ({"valid_from": "1767225600"}, "valid_from"),
    ({"valid_from": "2026-02-30T00:00:00Z"}, "valid_from"),
    ({"valid_from": "0001-01-01T00:00:00+14:00"}, "valid_from"),
    ({"valid_to": "9999-12-31T23:59:59-14:00"}, "valid_to"),
    ({"valid_from": "2026-02-02T00:00:00Z", "valid_to": "2026-02-01T00:00:00Z"}, "valid_to"),
    ({"edges": [{"to": "$memory", "type": "follows"}]}, "edges.0.type"),
    ({"edges": [{"to": "$memory", "type": "likes"}]}, "edges.0.type"),
    ({"edges": [{"to": "$memory"}]}, "edges.0.type"),
    ({"edges": [{"to": "x", "type": "led_to"}]}, "edges.0.to"),
    ({"edges": [{"to": "$memory", "type": "led_to", "weight": 1.5}]}, "edges.0.weight"),
    ({"edges": [{"to": "$memory", "type": "led_to", "x": 1}]}, "edges.0.x"),
    ({"edges": [{"to": "$memory", "type": "led_to"}] * 51}, "edges"),
    ({"metadata": []}, "metadata"),
    ({"metadata": {"a": {"b\u0000": 1}}}, "metadata.a"),
    ({"git": {"commit": "HEAD"}}, "git.commit"),
    ({"git": {"branch": ""}}, "git.branch"),
    ({"git": {"files": [""]}}, "git.files.0"),
    ({"git": {"files": ["a.py", "../../etc/passwd"]}}, "git.files.1"),
    ({"git": {"files": ["/etc/passwd"]}}, "git.files.0"),
    ({"git": {"files": ["a\nb.py"]}}, "git.files.0"),
    ({"git": {"files": ["x" * 1025]}}, "git.files.0"),
    ({"git": {"files": ["\u6f22" * 1000]}}, "git.files.0"),
    ({"git": {"files": ["a.py"] * 201}}, "git.files"),
    ({"git": {"lines": {"/etc/passwd": [[1, 2]]}}}, "git.lines"),
    ({"git": {"lines": {"": [[1, 2]]}}}, "git.lines"),
    ({"git": {"lines": {"a.py": [[1]]}}}, "git.lines.a.py.0"),
    ({"git": {"lines": {"a.py": [[-1, 2]]}}}, "git.lines.a.py.0"),
    ({"git": {"lines": {"a.py": [[9, 2]]}}}, "git.lines.a.py.0"),
    ({"git": {"lines": {"a.py": [[1, 10**30]]}}}, "git.lines.a.py.0"),
    ({"summary": ""}, "summary"),
    ({"supersede_reason": " "}, "supersede_reason"),
]


def _named(document: Mapping[str, Any], field: str) -> bool:
    named = str(document.get("field"))
    return named == field or named.startswith(f"{field}.")


@pytest.mark.parametrize(("wrong", "field"), WRONG_MEMORIES)
async def test_a_wrong_field_of_a_memory_is_named(
    place: Place, wrong: dict[str, Any], field: str
) -> None:
    data = json.dumps(place.filled({**REMEMBER, **wrong})).encode()
    document = await place.refused("POST", "/v1/remember", data)
    assert document["status"] == 422
    assert _named(document, field), document


@pytest.mark.parametrize(("wrong", "field"), WRONG_MEMORIES)
async def test_a_batch_names_the_item_and_the_field(
    place: Place, wrong: dict[str, Any], field: str
) -> None:
    await place.settled()
    before = place.tables.counts()
    items = [place.filled({**REMEMBER, **wrong})]
    status, _, body = await place.send(
        "POST", "/v1/remember/batch", json.dumps({"items": items}).encode()
    )
    assert place.tables.counts() == before
    document = json.loads(body)
    if status == 200:
        [document] = document["items"]
    assert document["status"] == 422
    assert _named(document, f"items.0.{field}"), document


async def test_content_may_be_as_long_as_the_limit_and_no_byte_longer(place: Place) -> None:
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


async def test_what_does_not_exist_is_not_found(place: Place) -> None:
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


WRONG_TURNS: list[tuple[dict[str, Any], str]] = [
    ({"role": "robot"}, "turns.0.role"),
    ({"role": None}, "turns.0.role"),
    ({"content": ""}, "turns.0.content"),
    ({"content": "  "}, "turns.0.content"),
    ({"content": {"text": "x"}}, "turns.0.content"),
    ({"at": "2026-01-01T00:00:00"}, "turns.0.at"),
    ({"at": "9999-12-31T23:59:59-14:00"}, "turns.0.at"),
    ({"tool": "x" * 201}, "turns.0.tool"),
    ({"external_id": ""}, "turns.0.external_id"),
    ({"external_id": "x" * 201}, "turns.0.external_id"),
    ({"digested": True}, "turns.0.digested"),
]


@pytest.mark.parametrize(("wrong", "field"), WRONG_TURNS)
async def test_a_wrong_field_of_a_turn_is_named(
    place: Place, wrong: dict[str, Any], field: str
) -> None:
    turns = [{**TURN, **wrong}]
    data = json.dumps({"session": place.session, "turns": turns}).encode()
    document = await place.refused("POST", "/v1/turns", data)
    assert (document["status"], document["field"]) == (422, field)


async def test_one_wrong_turn_keeps_all_of_its_call_out(place: Place) -> None:
    for wrong, status in (({"role": "x"}, 422), ({"content": "x" * 262_145}, 413)):
        turns = [TURN, {**TURN, **wrong}, TURN]
        data = json.dumps({"session": place.session, "turns": turns}).encode()
        document = await place.refused("POST", "/v1/turns", data)
        assert document["status"] == status
        assert document["field"].startswith("turns.1")
    for turns in ([], [TURN] * 1001):
        data = json.dumps({"session": place.session, "turns": turns}).encode()
        assert (await place.refused("POST", "/v1/turns", data))["field"] == "turns"


OTHER_POSTS: list[tuple[str, dict[str, Any], str]] = [
    ("/v1/sessions/start", {"agent": "x" * 201}, "agent"),
    ("/v1/sessions/start", {"project": " "}, "project"),
    ("/v1/sessions/start", {"branch": 5}, "branch"),
    ("/v1/sessions/start", {"external_id": ["x"]}, "external_id"),
    ("/v1/sessions/nope/end", {}, "id"),
    ("/v1/sessions/a%00b/end", {}, "id"),
    ("/v1/recall", {"limit": 0}, "limit"),
    ("/v1/recall", {"limit": 101}, "limit"),
    ("/v1/recall", {"limit": "5"}, "limit"),
    ("/v1/recall", {"limit": 2**63}, "limit"),
    ("/v1/recall", {"budget_tokens": -1}, "budget_tokens"),
    ("/v1/recall", {"depth": 9}, "depth"),
    ("/v1/recall", {"kinds": ["rumour"]}, "kinds.0"),
    ("/v1/recall", {"kinds": ["bug"] * 21}, "kinds"),
    ("/v1/recall", {"scopes": ["global", "project/a/b"]}, "scopes.1"),
    ("/v1/recall", {"scopes": ["global"] * 51}, "scopes"),
    ("/v1/recall", {"include": ["secrets"]}, "include.0"),
    ("/v1/recall", {"session": 5}, "session"),
    ("/v1/dream", {"scope": "project/.."}, "scope"),
    ("/v1/dream", {"session": "$session"}, "scope"),
    ("/v1/remember/batch", {"items": []}, "items"),
    ("/v1/remember/batch", {"items": [{}] * 501}, "items"),
    ("/v1/remember/batch", {"items": ["x"]}, "items.0"),
]


@pytest.mark.parametrize(("path", "wrong", "field"), OTHER_POSTS)
async def test_a_wrong_field_of_any_other_call_is_named(
    place: Place, path: str, wrong: dict[str, Any], field: str
) -> None:
    body = place.filled({**GOOD.get(path, {}), **wrong})
    document = await place.refused("POST", path, json.dumps(body).encode())
    assert (document["status"], document["field"]) == (422, field)


FILE = CHANGE["files"][0]
COMMIT = CHANGE["commits"][0]


def _file(**wrong: Any) -> dict[str, Any]:
    return {"files": [{**FILE, **wrong}]}


def _commit(**wrong: Any) -> dict[str, Any]:
    return {"commits": [{**COMMIT, **wrong}]}


WRONG_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"project": " "}, "project"),
    ({"branch": ""}, "branch"),
    ({"after": "HEAD"}, "after"),
    ({"after": "A" * 40}, "after"),
    ({"after": SHA + "\n"}, "after"),
    ({"before": "0" * 65}, "before"),
    ({"commits": []}, "commits"),
    ({"files": None}, "files"),
    (_commit(sha="main"), "commits.0.sha"),
    (_commit(subject="x" * 2001), "commits.0.subject"),
    (_commit(committed_at="2026-01-01T00:00:00"), "commits.0.committed_at"),
    (_commit(committed_at="9999-12-31T23:59:59-14:00"), "commits.0.committed_at"),
    (_commit(committed_at=1767225600), "commits.0.committed_at"),
    (_file(status="eaten"), "files.0.status"),
    (_file(path=""), "files.0.path"),
    (_file(path="/etc/passwd"), "files.0.path"),
    (_file(path="a/../../b"), "files.0.path"),
    (_file(path=".."), "files.0.path"),
    (_file(path="a\nb"), "files.0.path"),
    (_file(path="a\x7fb"), "files.0.path"),
    (_file(path="x" * 1025), "files.0.path"),
    (_file(path="\u6f22" * 1000), "files.0.path"),
    (_file(status="renamed"), "files.0.old_path"),
    (_file(status="renamed", old_path="../a"), "files.0.old_path"),
    (_file(status="renamed", old_path=""), "files.0.old_path"),
    (_file(hunks=[[1, 1, 1]]), "files.0.hunks.0"),
    (_file(hunks=[[-1, 1, 1, 1]]), "files.0.hunks.0"),
    (_file(hunks=[[1, -1, 1, 1]]), "files.0.hunks.0"),
    (_file(hunks=[[1, 1, 1, 2**63]]), "files.0.hunks.0"),
    (_file(hunks=[[1, 1, 1, 1.5]]), "files.0.hunks.0"),
    (_file(hunks=[["1", 1, 1, 1]]), "files.0.hunks.0"),
    (_file(hunks="all"), "files.0.hunks"),
    (_file(commit="HEAD"), "files.0.commit"),
    (_file(mode="100644"), "files.0.mode"),
]


@pytest.mark.parametrize(("wrong", "field"), WRONG_CHANGES)
async def test_a_wrong_field_of_a_git_change_is_named(
    place: Place, wrong: dict[str, Any], field: str
) -> None:
    data = json.dumps({**CHANGE, **wrong}).encode()
    document = await place.refused("POST", "/v1/git/changes", data)
    assert document["status"] == 422
    assert _named(document, field), document


def _cursor(position: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


LISTS = ("/v1/memories", "/v1/dreams", "/v1/stale", "/v1/sessions/$session/turns")
CURSORS = (
    "x", "%25", "%FF", "e30", _cursor([]), _cursor({"id": "x"}), _cursor({"id": 1}),
    _cursor({"ord": "1"}), _cursor({"ord": 2**31}), _cursor({"ord": -(2**70)}),
    _cursor({"id": MISSING, "tenant": 2}), "A" * 1001, "",
)  # fmt: skip


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("cursor", CURSORS)
async def test_a_cursor_that_was_tampered_with_is_refused(
    place: Place, path: str, cursor: str
) -> None:
    document = await place.refused("GET", f"{path}?cursor={cursor}")
    assert (document["status"], document["field"]) == (422, "cursor")


WRONG_QUERIES: list[tuple[str, str]] = [
    *(
        (f"{path}?limit={limit}", "limit")
        for path in LISTS
        for limit in ("0", "201", "x", "9" * 30)
    ),
    *((f"{path}?zzz=1", "zzz") for path in LISTS),
    *((f"{path}?limit=1&limit=2", "limit") for path in LISTS),
    ("/v1/memories?scope=nowhere", "scope"),
    ("/v1/memories?scope=", "scope"),
    ("/v1/memories?scope=global&scope=global", "scope"),
    ("/v1/memories?scope=project/a%00", "scope"),
    ("/v1/memories?kind=rumour", "kind"),
    ("/v1/memories?kind=", "kind"),
    ("/v1/memories?status=deleted", "status"),
    ("/v1/memories?status=gone", "status"),
    ("/v1/memories?session=x", "session"),
    ("/v1/memories?tag=", "tag"),
    ("/v1/memories?tag=%00", "tag"),
    ("/v1/memories/nope", "id"),
    ("/v1/memories/%00", "id"),
    ("/v1/memories/..%2f..%2fetc", "id"),
    ("/v1/memories/$memory?deep=1", "deep"),
    ("/v1/sessions/nope/turns", "id"),
    ("/v1/context?session=x", "session"),
    ("/v1/context?scope=nowhere", "scope"),
    ("/v1/context?project=", "project"),
    ("/v1/context?project=%20", "project"),
    ("/v1/context?project=a&scope=global", "scope"),
    ("/v1/context?scope=global&session=$session", "session"),
    ("/v1/context?budget_tokens=1", "budget_tokens"),
    ("/v1/context?budget_tokens=1e3", "budget_tokens"),
    ("/v1/dreams?scope=x", "scope"),
    ("/v1/dreams?scope=", "scope"),
    ("/v1/stale?scope=x", "scope"),
    ("/v1/stale?scope=", "scope"),
    ("/v1/stale?project=", "project"),
    ("/v1/stale?project=%20", "project"),
]


@pytest.mark.parametrize(("path", "field"), WRONG_QUERIES)
async def test_a_wrong_parameter_is_named(place: Place, path: str, field: str) -> None:
    document = await place.refused("GET", path)
    assert document["status"] == 422
    assert _named(document, field), document


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/remembered", 404),
        ("POST", "/v1/remember/other", 404),
        ("GET", "/v1/remember", 405),
        ("DELETE", "/v1/turns", 405),
        ("PUT", "/v1/recall", 405),
        ("POST", "/v1/memories", 405),
        ("PATCH", "/v1/recall", 405),
    ],
)
async def test_a_call_that_does_not_exist_says_so(
    place: Place, method: str, path: str, status: int
) -> None:
    assert (await place.refused(method, path, b"{}"))["status"] == status


async def test_of_a_batch_the_good_land_and_the_bad_say_why_in_order(place: Place) -> None:
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
    "/v1/remember": [field for wrong, _ in WRONG_MEMORIES for field in wrong],
    "/v1/remember/batch": ["items"],
    "/v1/turns": ["turns", "session"],
    "/v1/sessions/start": ["user", "branch", "external_id"],
    "/v1/sessions/$session/end": ["summary"],
    "/v1/recall": ["scopes", "limit", "budget_tokens", "depth", "kinds", "include", "session"],
    "/v1/dream": ["session"],
    "/v1/git/changes": ["before", "files", "commits"],
}


@settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=almost_good())
async def test_no_body_whatever_breaks_a_service(
    place: Place, case: tuple[str, dict[str, Any]]
) -> None:
    path, body = case
    data = json.dumps(place.filled(body)).encode()
    status, content_type, answer = await place.send("POST", path, data)
    if status >= 300:
        problem(status, content_type, answer)
