"""Which memories agents see that work side by side: every scope against every session."""

from __future__ import annotations

import json
from typing import Any

from reverie.domain.access.principals import KeyRole
from tests.support.stack import Stack, eventually

SESSIONS: dict[str, dict[str, str]] = {
    "ann": {"agent": "ann", "project": "shop", "branch": "cart", "group": "g1"},
    "bob": {"agent": "bob", "project": "shop", "branch": "cart", "group": "g1"},
    "sub": {"agent": "ann/sub/helper", "project": "shop", "branch": "cart", "group": "g1"},
    "eve": {"agent": "eve", "project": "shop"},
}
USERS = {"ann": "uma", "bob": "uma", "sub": "uma", "eve": "max"}
VISIBLE = {
    "user/uma": "ann bob sub",
    "user/max": "eve",
    "agent/ann": "ann",
    "agent/bob": "bob",
    "agent/ann/sub/helper": "sub",
    "group/g1": "ann bob sub",
    "group/g2": "",
    "project/shop/feature/cart": "ann bob sub",
    "project/shop/feature/other": "",
    "feature/cart": "ann bob sub",
    "feature/other": "",
    "project/shop": "ann bob sub eve",
    "project/shop/topic/caches": "ann bob sub eve",
    "project/else": "",
    "topic/caches": "ann bob sub eve",
    "topic/caches/redis": "ann bob sub eve",
    "global": "ann bob sub eve",
}
"""Who sees a scope: the table of the fan-out of a session, cell by cell."""
QUERY = "what is known of the quokka?"


def _keys(stack: Stack) -> dict[str, str]:
    return {
        name: stack.key_of(
            role=KeyRole.WRITER, agent=fields["agent"].partition("/")[0], user=USERS[name]
        )
        for name, fields in SESSIONS.items()
    }


async def _seen(stack: Stack, key: str, session: str) -> dict[str, set[str]]:
    """The scopes that each call finds for a session."""
    asked = {"session": session, "query": QUERY}
    recalled = await stack.post("/v1/recall", {**asked, "limit": 50}, key=key)
    more = {"include_seen": True, "budget_tokens": 20_000}
    preflow = await stack.post("/v1/preflow", {**asked, **more}, key=key)
    context = await stack.get(f"/v1/context?session={session}&budget_tokens=20000", key=key)
    return {
        "recall": {hit["scope"] for hit in recalled["memories"]},
        "preflow": _named(json.dumps(preflow)),
        "context": _named(context["markdown"]),
    }


def _content(scope: str) -> str:
    return f"The quokka of {scope.replace('/', ' ')} end lives on an island"


def _named(text: str) -> set[str]:
    return {scope for scope in VISIBLE if _content(scope) in text}


async def test_agents_of_a_session_see_what_they_share_and_no_more(stack: Stack) -> None:
    for scope in VISIBLE:
        body = {"content": _content(scope), "scope": scope, "kind": "convention"}
        await stack.post("/v1/remember", body)
    keys = _keys(stack)
    sessions = {
        name: (await stack.post("/v1/sessions/start", fields, key=keys[name]))["session"]
        for name, fields in SESSIONS.items()
    }
    cells = {}
    for name, session in sessions.items():
        seen = await _seen(stack, keys[name], session)
        shared = {scope.replace("group/", "session/") for scope in VISIBLE}
        assert seen["recall"] <= shared
        for scope, readers in VISIBLE.items():
            expected = name in readers.split()
            cells[name, scope] = (
                scope.replace("group/", "session/") in seen["recall"],
                scope in seen["context"],
            )
            assert cells[name, scope] == (expected, expected), (name, scope)
        assert seen["preflow"] <= {s for s, readers in VISIBLE.items() if name in readers.split()}
    assert len(cells) == len(VISIBLE) * len(SESSIONS)


async def test_scopes_say_what_of_a_session_is_looked_through(stack: Stack) -> None:
    for scope in ("project/shop", "global", "project/else"):
        body = {"content": _content(scope), "scope": scope, "kind": "convention"}
        await stack.post("/v1/remember", body)
    key = stack.key_of(role=KeyRole.WRITER, reads=["project/*", "global"])
    started = await stack.post("/v1/sessions/start", SESSIONS["ann"], key=key)
    session, scopes = started["session"], ["global", "project/else"]

    async def ask(way: str, scopes: list[str]) -> Any:
        if way == "context":
            params = {"session": session, "scopes": scopes}
            return await stack.call("GET", "/v1/context", params=params, key=key)
        more = {"include_seen": True} if way == "preflow" else {}
        body = {"session": session, "query": QUERY, "scopes": scopes, **more}
        return await stack.call("POST", f"/v1/{way}", body, key=key)

    for way in ("recall", "preflow", "context"):
        answer = await ask(way, scopes)
        assert answer.status == 200
        text = json.dumps(answer.body)
        assert {s for s in ("project/shop", *scopes) if _content(s) in text} == set(scopes)
        assert (await ask(way, ["user/max"])).status == 403
        wrong = await ask(way, ["nowhere"])
        assert (wrong.status, wrong.body["field"]) == (422, "scopes.0")


async def test_what_an_agent_learned_of_its_own_work_is_known_in_every_project(
    stack: Stack,
) -> None:
    key = stack.key_of(role=KeyRole.WRITER, agent="ann")
    lesson = "Next time I will read the whole file before I edit it."
    started = await stack.post("/v1/sessions/start", SESSIONS["ann"], key=key)
    turns = [
        {"role": "user", "content": "The cart loses items when two tabs are open. Why?"},
        {"role": "assistant", "content": f"The root cause was a stale cache. {lesson}"},
    ]
    await stack.post("/v1/turns", {"session": started["session"], "turns": turns}, key=key)
    await stack.post(f"/v1/sessions/{started['session']}/end", None, key=key)

    async def learned() -> list[Any]:
        return list((await stack.get("/v1/memories?scope=agent/ann"))["items"])

    [memory] = await eventually(learned)
    assert (memory["content"], memory["kind"]) == (lesson, "lesson")
    elsewhere = {"agent": "ann", "project": "blog"}
    assert lesson in (await stack.post("/v1/sessions/start", elsewhere, key=key))["context"]
    other = stack.key_of(role=KeyRole.WRITER, agent="bob")
    begun = await stack.post("/v1/sessions/start", {**elsewhere, "agent": "bob"}, key=other)
    assert lesson not in begun["context"]
