"""The answers that clients of mem0 and Hindsight get, within the rights of the key they send."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.examples import run_example
from tests.support.stack import Stack

BANK = "/compat/hindsight/v1/default/banks/shop"
ADA = {"filters": {"user_id": "ada"}}


async def call(stack: Stack, path: str, body: Any, key: str | None = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Token {key or stack.key}"}
    async with stack.http.post(f"{stack.url}{path}", json=body, headers=headers) as response:
        return response.status, await response.json()


async def test_what_mem0_adds_is_redacted_and_found(stack: Stack) -> None:
    text = "The printer is at 10.0.0.7; password=hunter2-Xk29vQ81"
    status, added = await call(
        stack, "/compat/mem0/v3/memories/add/", {"messages": [{"content": text}], "user_id": "ada"}
    )
    assert (status, [one["event"] for one in added["results"]]) == (200, ["ADD"])
    _, found = await call(stack, "/compat/mem0/v3/memories/", ADA)
    assert found["count"] == 1
    assert "hunter2" not in found["results"][0]["memory"]
    _, other = await call(stack, "/compat/mem0/v3/memories/", {"filters": {"user_id": "bob"}})
    assert other["count"] == 0


async def test_entities_of_mem0_come_back_as_they_were_given(stack: Stack) -> None:
    ada = {"user_id": "Ada@example.com", "agent_id": "Helper One"}
    body = {"messages": [{"content": "The pier is closed on Mondays."}], **ada}
    await call(stack, "/compat/mem0/v3/memories/add/", body)
    for filters in (ada, {"user_id": "Ada@example.com"}):
        _, found = await call(stack, "/compat/mem0/v3/memories/", {"filters": filters})
        [memory] = found["results"]
        assert {name: memory[name] for name in ada} == ada
        assert memory["categories"] == []


async def test_what_is_not_relevant_is_below_every_threshold_of_mem0(stack: Stack) -> None:
    said = [{"role": "user", "content": "Prices are kept in cents."}]
    await call(stack, "/compat/mem0/v3/memories/add/", {"messages": said, "user_id": "ada"})
    asked = {**ADA, "query": "Which stars belong to the Big Dipper?", "threshold": 0.3}
    _, found = await call(stack, "/compat/mem0/v3/memories/search/", asked)
    assert found["results"] == []


async def test_pages_of_mem0_hold_everything_once(stack: Stack) -> None:
    said = [{"content": f"Buoy {n} is red."} for n in range(5)]
    await call(stack, "/compat/mem0/v3/memories/add/", {"messages": said, "user_id": "ada"})
    seen: list[str] = []
    for page in (1, 2, 3):
        path = f"/compat/mem0/v3/memories/?page={page}&page_size=2"
        _, found = await call(stack, path, ADA)
        assert (found["count"], found["next"] is None) == (5, page == 3)
        seen += [one["memory"] for one in found["results"]]
    assert sorted(seen) == [one["content"] for one in said]


@pytest.mark.parametrize("path", ["/compat/mem0/v3/memories/search/", f"{BANK}/memories/recall"])
async def test_a_key_reads_what_it_may_and_no_more(stack: Stack, path: str) -> None:
    retained = {"items": [{"content": "The vault opens at nine."}]}
    assert (await call(stack, f"{BANK}/memories", retained))[0] == 200
    asked = {"filters": {"app_id": "shop"}, "query": "When does the vault open?"}
    _, found = await call(stack, path, asked)
    assert len(found["results"]) == 1
    status, answer = await call(stack, path, asked, stack.key_of(reads=["project/other"]))
    assert (status, answer.get("results", [])) in [(200, []), (403, [])]
    status, problem = await call(stack, path, asked, "rv_wrong")
    assert (status, problem["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/compat/mem0/v3/memories/", {}, 422, "user_id"),
        ("/compat/mem0/v3/memories/", {"filters": {"age": 3}}, 422, "age"),
        ("/compat/mem0/v3/memories/add/", {"user_id": "ada"}, 422, "text"),
        ("/compat/mem0/v9/tides/", {}, 404, "tides"),
        ("/compat/other/v1/", {}, 404, "v1"),
        (f"{BANK}/memories", {"items": []}, 422, "retain"),
        (f"{BANK}/memories", {"items": [{"content": ""}]}, 422, "content"),
        (f"{BANK}/memories", [1], 400, "object"),
    ],
)
async def test_what_is_refused_says_why(
    stack: Stack, path: str, body: Any, status: int, said: str
) -> None:
    got, problem = await call(stack, path, body)
    assert (got, said in str(problem)) == (status, True), problem


@pytest.mark.parametrize(
    ("address", "scope"),
    [(BANK, "project/shop"), ("/compat/mem0/v1/memories?user_id=ada", "user/ada")],
)
async def test_what_is_deleted_leaves_nothing_of_any_status(
    stack: Stack, address: str, scope: str
) -> None:
    archived, other, _, _ = [
        (await stack.post("/v1/remember", body))["id"]
        for body in [
            {"content": "The mill is closed in June.", "scope": scope},
            {"content": "Buoys are red.", "scope": "project/other"},
            {"content": "Prices are kept in cents.", "scope": scope, "key": "prices"},
            {
                "content": "Prices are kept in euros.",
                "scope": scope,
                "key": "prices",
                "supersede_reason": "a new rule",
            },
        ]
    ]
    await stack.post(f"/v1/memories/{archived}/archive", {})
    every = "/v1/memories?status=active&status=superseded&status=archived"
    assert len((await stack.get(every))["items"]) == 4
    assert (await stack.call("DELETE", address)).status == 200
    assert [memory["id"] for memory in (await stack.get(every))["items"]] == [other]


MEM0 = "/compat/mem0"
TEXTS = [{"content": "A buoy."}]


MALFORMED: list[tuple[str, str, Any, str]] = [
    ("POST", f"{MEM0}/v3/memories/add", {"messages": "abc", "user_id": "ada"}, "messages"),
    ("POST", f"{MEM0}/v3/memories/add", {"messages": ["abc"], "user_id": "ada"}, "messages.0"),
    ("POST", f"{MEM0}/v3/memories/add", {"messages": TEXTS, "user_id": [1]}, "user_id"),
    ("POST", f"{MEM0}/v3/memories/add", {"messages": TEXTS, "filters": "x"}, "filters"),
    (
        "POST",
        f"{MEM0}/v3/memories/add",
        {"messages": TEXTS, "user_id": "ada", "metadata": 1},
        "metadata",
    ),
    ("POST", f"{MEM0}/v3/memories", {"filters": "x"}, "filters"),
    ("POST", f"{MEM0}/v3/memories", {"filters": {"AND": "x"}}, "filters.AND"),
    ("POST", f"{MEM0}/v3/memories", {"filters": {"AND": [1]}}, "filters.AND.0"),
    ("POST", f"{MEM0}/v3/memories", {"filters": {"user_id": {"in": ["a"]}}}, "user_id"),
    ("POST", f"{MEM0}/v3/memories?page=abc", ADA, "page"),
    ("POST", f"{MEM0}/v3/memories?page={10**30}", ADA, "page"),
    ("POST", f"{MEM0}/v3/memories?page=1&page=2", ADA, "page"),
    ("POST", f"{MEM0}/v3/memories?page_size=-5", ADA, "page_size"),
    ("POST", f"{MEM0}/v3/memories/search", {**ADA, "query": ["x"]}, "query"),
    ("POST", f"{MEM0}/v3/memories/search", {**ADA, "query": "x", "top_k": "y"}, "top_k"),
    ("POST", f"{MEM0}/v3/memories/search", {**ADA, "query": "x", "threshold": []}, "threshold"),
    ("DELETE", f"{MEM0}/v1/memories?user_id=a&user_id=b", None, "user_id"),
    ("GET", f"{MEM0}/v1/memories/%3Fa%00é", None, ""),
    ("PUT", f"{MEM0}/v1/memories/x", {"text": [1]}, ""),
    ("POST", f"{BANK}/memories", {"items": "x"}, "items"),
    ("POST", f"{BANK}/memories", {"items": ["x"]}, "items.0"),
    ("POST", f"{BANK}/memories", {"items": [{"content": [{}]}]}, "content"),
    ("POST", f"{BANK}/memories", {"items": [{"content": [{"type": "text"}]}]}, "content"),
    ("POST", f"{BANK}/memories", {"items": [{"content": 1, "tags": "x"}]}, "tags"),
    ("POST", f"{BANK}/memories", {"items": [{"content": "a", "metadata": 1}]}, "metadata"),
    ("POST", f"{BANK}/memories/recall", {"query": "x", "max_tokens": []}, "max_tokens"),
    ("POST", f"{BANK}/memories/recall", {"query": "x", "tags": 1}, "tags"),
    ("GET", f"{BANK}/memories/list?limit=abc", None, "limit"),
    ("GET", f"{BANK}/memories/list?offset=-1", None, "offset"),
    ("PUT", BANK, {"name": {}}, "name"),
]
"""Method, path and body of a call, and what its problem names."""


async def test_what_is_malformed_is_a_problem_that_names_it(stack: Stack) -> None:
    for method, path, body, said in MALFORMED:
        reply = await stack.call(method, path, body)
        assert reply.status == 422 or (not said and reply.status in {400, 404}), (path, body, reply)
        assert said in reply.body["detail"], (path, body, reply)


@pytest.mark.parametrize("body", ["[" * 100_000, "{", '{"a": ' * 40 + "1" + "}" * 40, "\xff"])
async def test_a_body_that_cannot_be_read_is_a_problem(stack: Stack, body: str) -> None:
    reply = await stack.call("PUT", BANK, None, data=body.encode("latin-1"))
    assert reply.status in {400, 422}, reply


async def test_the_client_of_mem0_needs_only_another_address(stack: Stack) -> None:
    assert await run_example(stack, "compat/mem0_memory", "mem0") == [
        "['Prices are kept in cents.']",
        "Prices are kept in euros.",
        "Prices are kept in euros. 1",
        "0",
        "Error: the key is missing or unknown: send `Authorization: Bearer <key>`",
    ]


async def test_the_client_of_hindsight_needs_only_another_address(stack: Stack) -> None:
    assert await run_example(stack, "compat/hindsight_memory", "hindsight") == [
        "1",
        "['Prices are kept in cents.']",
        "1",
        "1 0",
    ]
