"""Fuzzed arguments and bodies through MCP, webhooks, bus and REST."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, CallToolResult, Tool

from reverie.bus.nats_bus import connect
from reverie.bus.streams import STALENESS_CHANGES
from reverie.contracts.problems import PROBLEM_TITLES
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.interfaces.invalid_input import INSIDE
from tests.security.fuzz_inputs import EXAMPLES, ODD, leaves, nested, spoilt, tried
from tests.staleness.test_http_intake import CHANGE, OLD, SECRET, github, pushed
from tests.support.mcp_clients import over_http, said
from tests.support.stack import Stack, eventually, running_stack
from tests.support.tables import Tables

AT_ONCE = 8
WORDS = ("project/shop", "*", "latest", "2026-03-02T10:00:00Z", "decision", "../a", "a" * 40, "%00",
         "refs/heads/main", "main", "modified", "deleted", "'; drop table memory; --", "{}", "[]",
         "01936f1e-5b7a-7c11-9d2e-3a4b5c6d7e8f")  # fmt: skip
NAMES = ("id", "sha", "path", "ref", "commits", "files", "hunks", "status", "added", "removed")
PULL = {
    "pull_request": {
        "merged": True, "merge_commit_sha": "c" * 40,
        "head": {"ref": "feat/a", "repo": {"full_name": "acme/shop"}},
        "base": {"ref": "main", "repo": {"full_name": "acme/shop"}},
    },
    "repository": {"full_name": "acme/shop", "default_branch": "main"},
}  # fmt: skip
MERGE = {
    "object_attributes": {
        "action": "merge", "source_branch": "feat/a", "target_branch": "main",
        "source_project_id": 1, "target_project_id": 1, "merge_commit_sha": "c" * 40,
    },
    "project": {"path_with_namespace": "acme/shop", "default_branch": "main"},
}  # fmt: skip


# Services draw random numbers in a thread of their own, while a strategy does.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module")


def generate(strategy: st.SearchStrategy[Any], times: int = 1) -> list[Any]:
    """What a strategy comes up with: the same each time in the suite."""
    found: list[Any] = []
    for _ in range(times):
        tried(given(strategy)(lambda one: found.append(one)))()
    return found


def arguments_of(tool: Tool) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of a tool: some that fit its schema, some that do not, some it does not know."""
    schema = tool.input_schema
    known = schema.get("properties", {})
    fields = {name: _value(one) | leaves(WORDS) for name, one in known.items()}
    required = {name: fields.pop(name) for name in schema.get("required", ()) if name in fields}
    return st.fixed_dictionaries(required, optional=fields) | st.dictionaries(
        st.sampled_from([*known, "tenant", "__proto__", ""]), nested(WORDS, NAMES), max_size=4
    )


def _value(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """A value that the schema of a field may take."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([_value(one) for one in schema["anyOf"]])
    match schema.get("type"):
        case "array":
            return st.lists(_value(schema.get("items", {})), max_size=3)
        case "integer":
            return st.integers(schema.get("minimum", 0), schema.get("maximum", 1000))
        case "number":
            return st.floats(0, 1)
        case "boolean":
            return st.booleans()
        case "object":
            return nested(WORDS, NAMES)
    return st.sampled_from(WORDS) | st.text(min_size=1, max_size=12)


def gitlab(body: Any, event: str) -> dict[str, Any]:
    """A delivery as GitLab sends it."""
    headers = {"X-Gitlab-Event": event, "X-Gitlab-Token": SECRET}
    return {"data": _bytes(body), "headers": {**headers, "Content-Type": "application/json"}}


async def test_a_tool_answers_any_arguments(alone: Stack) -> None:
    async with over_http(f"{alone.url}/mcp?project=shop", alone.key) as client:
        tools = (await client.list_tools()).tools
        asked = [(one.name, given) for one in tools for given in generate(arguments_of(one))]
        found = [one for one in await _at_once(_called(client, *one) for one in asked) if one]
    assert len(asked) >= len(tools) * min(EXAMPLES, 3)
    assert not found, "\n".join(found[:20])


async def _called(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    """What is wrong with the answer of a tool, if anything is."""
    told = json.loads(json.dumps(arguments, ensure_ascii=False).encode(errors="replace"))
    try:
        result = await client.call_tool(tool, told)
    except MCPError as error:
        wrong = error.error.code == INTERNAL_ERROR
        return f"{tool} {arguments}: {error}" if wrong else ""
    assert isinstance(result, CallToolResult)
    code = (result.structured_content or {}).get("code")
    broken = result.is_error and (code not in PROBLEM_TITLES or code == "internal")
    inside = [word for word in INSIDE if word in said(result)]
    return f"{tool} {arguments}: {said(result)[:300]}" if broken or inside else ""


async def test_any_webhook_or_bus_message_is_accepted_or_refused(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with running_stack(database, nats_url, model_home(), vault_key=OLD) as stack:
        await stack.post("/v1/remember", {"content": "x", "scope": "project/shop"})
        assert not await _told(stack, nats_url)


async def _told(stack: Stack, nats_url: str) -> list[str]:
    """What is wrong with the answers to deliveries of forges and to changes told by two doors."""
    for kind in ("github", "gitlab"):
        await stack.call("PUT", f"/v1/git/webhooks/{kind}/shop", {"secret": SECRET})
    told = [
        *((github, body, "push") for body in generate(spoilt(pushed(), WORDS, NAMES))),
        *((github, body, "pull_request") for body in generate(spoilt(PULL, WORDS, NAMES))),
        *((gitlab, body, "Push Hook") for body in generate(spoilt(pushed(), WORDS, NAMES))),
        *((gitlab, body, "Merge Request Hook") for body in generate(spoilt(MERGE, WORDS, NAMES))),
    ]
    wrong = await _at_once(_delivered(stack, make(body, event)) for make, body, event in told)
    changes = generate(spoilt(CHANGE, WORDS, NAMES))
    wrong += await _at_once(_answered(stack, "/v1/git/changes", one) for one in changes)
    async with connect(nats_url, "test") as bus:
        await bus.wait_connected(30)
        for one in changes:
            await bus.send("git.default.shop.changed", _bytes(one)[:60_000], {})

        async def taken() -> bool:
            return await bus.lag(STALENESS_CHANGES) == 0

        await eventually(taken)
    with closing(Tables(stack.admin_url)) as tables:

        async def idle() -> bool:
            return tables.idle()

        await eventually(idle)
    return [one for one in wrong if one]


@pytest.fixture
def queries() -> list[tuple[str, dict[str, str]]]:
    text = st.sampled_from((*WORDS, *ODD)) | st.text(max_size=12)
    return [
        (path, {name: value})
        for path, name in (
            ("/v1/memories", "scope"), ("/v1/memories", "cursor"), ("/v1/memories", "tag"),
            ("/v1/stale", "project"), ("/v1/context", "session"), ("/v1/events/page", "after"),
            ("/v1/dreams", "cursor"), ("/v1/traces", "cursor"), ("/v1/export", "scope"),
        )
        for value in generate(text)
    ]  # fmt: skip


@pytest.fixture
def recalls() -> list[Any]:
    return generate(spoilt({"query": "x", "scopes": ["global"], "as_of": WORDS[3]}, WORDS, NAMES))


async def test_any_scope_time_and_cursor_of_a_query_is_parsed_or_refused(
    # What is made comes before the system works: its use of `random` would be taken for theirs.
    queries: list[tuple[str, dict[str, str]]],
    recalls: list[Any],
    stack: Stack,
) -> None:
    wrong = await _at_once(_got(stack, path, query) for path, query in queries)
    wrong += await _at_once(_answered(stack, "/v1/recall", one) for one in recalls)
    assert not [one for one in wrong if one]


async def _at_once(calls: Any) -> list[str]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(call: Any) -> str:
        async with gate:
            return str(await call)

    return await asyncio.gather(*map(one, calls))


def _bytes(body: Any) -> bytes:
    return json.dumps(body).encode(errors="replace")


async def _delivered(stack: Stack, sent: dict[str, Any]) -> str:
    kind = "gitlab" if "X-Gitlab-Event" in sent["headers"] else "github"
    reply = await stack.call("POST", f"/v1/git/{kind}/default/shop", **sent)
    return _wrong(reply.status, reply.body, sent["data"])


async def _answered(stack: Stack, path: str, body: Any) -> str:
    headers = {"Content-Type": "application/json"}
    reply = await stack.call("POST", path, data=_bytes(body), headers=headers)
    return _wrong(reply.status, reply.body, body)


async def _got(stack: Stack, path: str, query: dict[str, str]) -> str:
    safe = {name: value.encode(errors="replace").decode() for name, value in query.items()}
    url = f"{stack.url}{path}"
    headers = {"Authorization": f"Bearer {stack.key}"}
    async with stack.http.get(url, params=safe, headers=headers) as answer:
        text = await answer.text()
        return _wrong(answer.status, text, (path, query))


def _wrong(status: int, body: Any, sent: Any) -> str:
    """What is wrong with an answer: it is no refusal that says which, or it tells of our inside."""
    text = body if isinstance(body, str) else json.dumps(body)
    inside = [word for word in INSIDE if word in text]
    return f"{status} {text[:300]} of {sent!r:.500}" if status >= 500 or inside else ""
