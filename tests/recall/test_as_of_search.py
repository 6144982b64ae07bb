"""Recall as of a moment filters before it takes the best results."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.support.stack import Stack

HERE = "project/shop"
MORE = 120
"""More than an arm brings."""


async def _remember(stack: Stack, *items: dict[str, Any]) -> list[str]:
    body = {"items": [{"scope": HERE, "kind": "context", **item} for item in items]}
    return [one["id"] for one in (await stack.post("/v1/remember/batch", body))["items"]]


async def _found(stack: Stack, **asked: Any) -> list[str]:
    body = {"query": "osprey nests", "limit": 5, **asked}
    answer = await stack.post("/v1/recall", body)
    assert answer["degraded"] == []
    return [one["id"] for one in answer["memories"]]


def _crowd(**fields: Any) -> list[dict[str, Any]]:
    """Memories of one text, each in a scope of its own: the model reads it once."""
    scopes = (f"{HERE}/topic/t{n}" for n in range(MORE))
    return [{"content": "Osprey nests: osprey nest", "scope": scope, **fields} for scope in scopes]


async def test_filters_combined_with_a_moment_apply_before_the_best_are_selected(
    stack: Stack,
) -> None:
    plain = "Long ago somebody saw that osprey pairs come back to where their nests were"
    rare = {"content": plain, "tags": ["birds"], "valid_from": "2020-05-01T00:00:00Z"}
    [wanted, *_] = await _remember(stack, rare, *_crowd())
    now = datetime.now(UTC).isoformat()
    for asked in (
        {"tags": ["birds"]},
        {"until": "2021-01-01T00:00:00Z"},
        {"valid_at": "2020-06-01T00:00:00Z", "until": "2021-01-01T00:00:00Z"},
    ):
        assert await _found(stack, **asked) == [wanted], asked
        assert await _found(stack, as_of=now, **asked) == [wanted], asked


async def test_a_memory_true_at_a_moment_is_found_however_many_are_true_since(stack: Stack) -> None:
    plain = "Long ago somebody saw that osprey pairs come back to where their nests were"
    rare = {"content": plain, "valid_to": "2021-01-01T00:00:00Z"}
    [wanted, *_] = await _remember(stack, rare, *_crowd(valid_from="2022-01-01T00:00:00Z"))
    await stack.settled()
    now = datetime.now(UTC).isoformat()
    for moment in ({}, {"as_of": now}):
        assert await _found(stack, valid_at="2020-06-01T00:00:00Z", **moment) == [wanted], moment


async def test_later_turns_take_no_place_among_those_before_a_moment(
    stack: Stack,
) -> None:
    session = (await stack.post("/v1/sessions/start", {"agent": "ann", "project": "shop"}))[
        "session"
    ]
    first = {"role": "user", "content": "Long ago somebody saw osprey pairs come to their nests"}
    await stack.post("/v1/turns", {"session": session, "turns": [first]})
    then = datetime.now(UTC).isoformat()
    later = [{"role": "user", "content": f"Osprey nests: osprey nest {n}"} for n in range(MORE)]
    for start in range(0, MORE, 40):
        await stack.post("/v1/turns", {"session": session, "turns": later[start : start + 40]})
    body = {"query": "osprey nests", "scopes": [HERE], "include": ["turns"], "as_of": then}
    found = (await stack.post("/v1/recall", body))["memories"]
    assert [one["content"] for one in found] == [first["content"]]
