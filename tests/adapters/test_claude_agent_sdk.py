"""The Claude Agent SDK's own contracts hold for its session store on Reverie."""

from __future__ import annotations

import asyncio
import itertools
import json
from types import SimpleNamespace
from typing import Any

import pytest

from reverie.adapters.claude_agent_sdk import ReverieSessionStore
from reverie.adapters.common import MAX_SESSIONS
from reverie.client import AsyncReverie, Unavailable
from tests.adapters.examples import run_example
from tests.support.stack import Stack

KEY = {"project_key": "-srv-shop", "session_id": "7c2f01aa"}


def _entry(uuid: str, role: str, text: str, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    at = "2026-03-02T10:00:00.000Z"
    return {
        "type": role,
        "uuid": uuid,
        "cwd": "/srv/shop",
        "timestamp": at,
        "message": message,
    } | more


async def test_all_contracts_of_the_sdk_hold(stack: Stack) -> None:
    testing = pytest.importorskip("claude_agent_sdk.testing", reason="needs claude-agent-sdk")
    numbers = itertools.count()
    async with AsyncReverie(stack.url, stack.key) as reverie:
        await testing.run_session_store_conformance(
            lambda: ReverieSessionStore(reverie, scope=f"project/store{next(numbers)}")
        )


async def test_the_summaries_of_the_sdk_follow_what_is_added(stack: Stack) -> None:
    sdk = pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk")
    async with AsyncReverie(stack.url, stack.key) as reverie:
        store = ReverieSessionStore(reverie)
        entries: list[dict[str, Any]] = []
        for number in range(3):
            added = [
                _entry(f"u{number}", "user", f"Prompt {number}"),
                {"type": "x", "customTitle": str(number)},
            ]
            await store.append(KEY, added)
            entries += added
            [summary] = await store.list_session_summaries(KEY["project_key"])
            assert summary["data"] == sdk.fold_session_summary(None, KEY, entries)["data"]


async def test_entries_come_back_in_order_and_only_once(stack: Stack) -> None:
    entries = [
        _entry("a", "user", "A\0B \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")),
        {"type": "summary", "n": 1.5, "deep": [{"x": None}]},
        _entry("b", "assistant", "C"),
    ]
    async with AsyncReverie(stack.url, stack.key) as reverie:
        store = ReverieSessionStore(reverie)
        await store.append(KEY, entries)
        # The SDK sends a batch again if it did not hear of it.
        await store.append(KEY, [entries[0], entries[2], _entry("c", "user", "D")])
        loaded = await store.load(KEY)
    assert loaded is not None
    assert [entry.get("uuid") for entry in loaded] == ["a", None, "b", "c"]
    assert loaded[1] == entries[1]
    assert json.dumps(loaded[0]) == json.dumps(entries[0]).replace("\\u0000", "\\ufffd")


async def test_a_transcript_becomes_turns_of_one_session_that_hooks_know_too(stack: Stack) -> None:
    async with AsyncReverie(stack.url, stack.key) as reverie:
        store = ReverieSessionStore(reverie)
        await store.append(KEY, [_entry("a", "user", "How do we store prices?")])
        await store.append({**KEY, "subpath": "subagents/x"}, [_entry("s", "user", "Look it up.")])
        await store.append(KEY, [_entry("b", "assistant", "As whole numbers of cents.")])
        start = {"agent": "claude-code", "project": "shop", "external_id": KEY["session_id"]}
        session = (await stack.post("/v1/sessions/start", start))["session"]
        again = {"role": "user", "content": "How do we store prices?", "external_id": "a"}
        await stack.post("/v1/turns", {"session": session, "turns": [again]})
        turns = (await stack.get(f"/v1/sessions/{session}/turns"))["items"]
        assert [turn["content"] for turn in turns] == [
            "How do we store prices?",
            "As whole numbers of cents.",
        ]
        await store.delete(KEY)
        assert await store.load(KEY) is None
        assert (await stack.get(f"/v1/sessions/{session}/turns"))["items"] == turns


async def test_appends_at_once_and_repeated_entries_store_each_turn_once(stack: Stack) -> None:
    entries = [_entry(f"u{number}", "user", f"Prompt {number}") for number in range(8)]
    async with AsyncReverie(stack.url, stack.key) as reverie:
        store = ReverieSessionStore(reverie)
        await asyncio.gather(*(store.append(KEY, [one, one]) for one in entries))
        loaded = await store.load(KEY)
    assert loaded is not None
    assert sorted(entry["uuid"] for entry in loaded) == [entry["uuid"] for entry in entries]
    [session] = (await stack.get("/v1/sessions?agent=claude-code"))["items"]
    turns = (await stack.get(f"/v1/sessions/{session['id']}/turns"))["items"]
    assert sorted(turn["content"] for turn in turns) == [f"Prompt {n}" for n in range(8)]


class LateReverie(AsyncReverie):
    """Does not answer the first start of a session."""

    starts = 0

    async def start_session(self, agent: str, **more: Any) -> Any:
        self.starts += 1
        if self.starts == 1:
            raise Unavailable("the gateway", "try again")
        return await super().start_session(agent, **more)


async def test_turns_that_could_not_be_sent_come_with_the_next_entries(stack: Stack) -> None:
    async with LateReverie(stack.url, stack.key) as reverie:
        store = ReverieSessionStore(reverie)
        await store.append(KEY, [_entry("a", "user", "First.")])
        assert await store.load(KEY) is not None
        await store.append(KEY, [_entry("b", "user", "Second.")])
    [session] = (await stack.get("/v1/sessions?agent=claude-code"))["items"]
    turns = (await stack.get(f"/v1/sessions/{session['id']}/turns"))["items"]
    assert [turn["content"] for turn in turns] == ["First.", "Second."]


class CountingReverie(AsyncReverie):
    """Takes everything, and notes the sessions that were started."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1", "rv_none")
        self.started: list[str] = []

    async def put_documents(self, *args: Any, **more: Any) -> Any:
        pass

    async def start_session(self, agent: str, **more: Any) -> Any:
        self.started.append(more["external_id"])
        return SimpleNamespace(session=more["external_id"])

    async def append_turns(self, *args: Any, **more: Any) -> Any:
        pass


async def test_only_the_sessions_that_were_written_last_are_held() -> None:
    async with CountingReverie() as reverie:
        store = ReverieSessionStore(reverie)
        written = [*map(str, range(MAX_SESSIONS)), "0", "new"]
        for session in [*written, "0", "1", "new"]:
            await store.append({**KEY, "session_id": session}, [_entry("a", "user", "Prices?")])
    # "0" was written again before "new" came, so "1" made room.
    assert [session for session in reverie.started if reverie.started.count(session) > 1] == [
        "1",
        "1",
    ]


async def test_the_example_goes_on_where_only_the_store_knows_of_the_session(
    stack: Stack,
) -> None:
    pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk")
    lines = await run_example(stack, "adapters/claude_agent_store")
    assert lines == [
        "Decided: prices are whole numbers of cents, because floats lost money.",
        "Because floats lost money.",
        "kept: True",
    ]
