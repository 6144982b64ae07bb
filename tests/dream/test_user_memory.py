"""What people prefer is their own memory, in all their projects and for no other key."""

from __future__ import annotations

from typing import Any

from reverie.domain.access.principals import KeyRole
from tests.support.mcp_clients import call, over_http
from tests.support.stack import Stack, eventually

OWN = "I prefer short answers without emojis."
RULE = "In this project I prefer tabs over spaces."
ASKED = {"query": "which answers and which spaces are preferred?"}


def _key(stack: Stack, user: str | None) -> str:
    return stack.key_of(role=KeyRole.WRITER, user=user)


async def _say(stack: Stack, key: str, project: str, *said: str, **more: Any) -> str:
    start = {"agent": "claude-code", "project": project, "external_id": f"{project} {key}"}
    session = (await stack.post("/v1/sessions/start", start, key=key, **more))["session"]
    turns = [{"role": "user", "content": text} for text in said]
    await stack.post("/v1/turns", {"session": session, "turns": turns}, key=key)
    await stack.post(f"/v1/sessions/{session}/end", None, key=key)
    return str(session)


async def _dreamt(stack: Stack, scope: str) -> list[tuple[str, str]]:
    async def found() -> list[tuple[str, str]]:
        runs = (await stack.get(f"/v1/dreams?scope={scope}"))["items"]
        if not any(run["status"] == "done" for run in runs):
            return []
        memories = (await stack.get("/v1/memories"))["items"]
        return [(memory["scope"], memory["content"]) for memory in memories]

    return await eventually(found)


async def _texts(stack: Stack, key: str, **question: Any) -> str:
    answer = await stack.post("/v1/recall", {**ASKED, **question}, key=key)
    return " ".join(hit["content"] for hit in answer["memories"])


async def test_what_somebody_prefers_is_known_in_all_their_projects_and_to_nobody_else(
    stack: Stack,
) -> None:
    ann, bob = _key(stack, "ann"), _key(stack, "bob")
    await _say(stack, ann, "shop", OWN, RULE)
    kept = await _dreamt(stack, "project/shop")
    assert ("user/ann", OWN) in kept
    assert ("project/shop", RULE) in kept
    assert [scope for scope, content in kept if "emojis" in content] == ["user/ann"]

    # In another project, another session of hers starts with it, and a recall finds it.
    start = {"agent": "codex", "project": "blog"}
    begun = await stack.post("/v1/sessions/start", start, key=ann)
    assert OWN in begun["context"]
    assert RULE not in begun["context"]
    assert OWN in await _texts(stack, ann, project="blog")
    asked = {"session": begun["session"], "query": "how long may answers be?", "include_seen": True}
    assert OWN in (await stack.post("/v1/preflow", asked, key=ann))["markdown"]

    # Bob's key has no way to it, whatever it names.
    other = await stack.post("/v1/sessions/start", {**start, "user": "ann"}, key=bob)
    assert OWN not in other["context"]
    for question in ({}, {"project": "shop"}, {"project": "blog"}):
        assert OWN not in await _texts(stack, bob, **question)
    named = {**ASKED, "scopes": ["user/ann"]}
    assert (await stack.call("POST", "/v1/recall", named, key=bob)).status == 403
    theirs = {"content": "Ann likes long answers", "scope": "user/ann"}
    assert (await stack.call("POST", "/v1/remember", theirs, key=bob)).status == 403


async def test_a_key_of_nobody_writes_for_whom_a_call_names_if_it_may(stack: Stack) -> None:
    shared = _key(stack, None)
    named = {"headers": {"Reverie-User": "ann"}}
    remembered = {"content": "I prefer early returns.", "kind": "preference"}
    await stack.post("/v1/remember", remembered, key=shared, **named)
    mine = await stack.post("/v1/recall", ASKED, key=shared, **named)
    assert [hit["scope"] for hit in mine["memories"]] == ["user/ann"]
    # For another user, only naming the scope shows it.
    other = {"headers": {"Reverie-User": "bob"}}
    assert (await stack.post("/v1/recall", ASKED, key=shared, **other))["memories"] == []
    # A key that may write the project alone does not write elsewhere, whomever it names.
    narrow = stack.key_of(role=KeyRole.WRITER, writes=["project/shop/*"], reads=["*"])
    await _say(stack, narrow, "shop", "I prefer long explanations.", **named)
    kept = await _dreamt(stack, "project/shop")
    assert ("project/shop", "I prefer long explanations.") in kept


async def test_an_agent_remembers_a_preference_for_the_user_over_mcp(stack: Stack) -> None:
    key = _key(stack, None)
    headers = {"Reverie-User": "ann@example.com"}
    async with over_http(f"{stack.url}/mcp?project=shop", key, headers=headers) as client:
        await call(client, "remember", content="I prefer early returns.", kind="preference")
        await call(client, "remember", content="We prefer squash merges.", kind="preference")
        found = await call(client, "recall", query="what is preferred?")
    scopes = {hit["content"]: hit["scope"] for hit in found["memories"]}
    assert scopes["We prefer squash merges."] == "project/shop"
    assert scopes["I prefer early returns."].startswith("user/ann-example-com")


async def test_a_key_that_may_not_write_for_a_person_says_nothing_in_their_name(
    stack: Stack,
) -> None:
    ann, bob = _key(stack, "ann"), _key(stack, "bob")
    start = {"agent": "claude-code", "project": "shop"}
    session = (await stack.post("/v1/sessions/start", start, key=ann))["session"]
    turns = {"session": session, "turns": [{"role": "user", "content": OWN}]}
    await stack.post("/v1/turns", turns, key=bob)
    await stack.post(f"/v1/sessions/{session}/end", None, key=ann)
    kept = await _dreamt(stack, "project/shop")
    assert [scope for scope, _ in kept if scope.startswith("user/")] == []
