"""Inputs just within the limits are stored, enriched and read back."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import Stack, running_stack
from tests.support.tables import rows

CHANCE = random.Random(7)
LIMIT = 65_536
TURN_LIMIT = 262_144


def _of(alphabet: str, size: int) -> str:
    """Text of that many bytes without any repetition to speak of."""
    wide = len(alphabet[0].encode())
    return "".join(CHANCE.choices(alphabet, k=size // wide))


def _of_all(alphabets: Sequence[str], size: int) -> str:
    """An equal part of it of each alphabet."""
    return "".join(_of(alphabet, size // len(alphabets)) for alphabet in alphabets)


CJK = "".join(chr(n) for n in range(0x4E00, 0x9FFF))
RARE_CJK = "".join(chr(n) for n in range(0x20000, 0x2A000))
CAMEL = "aBcDeFgHiJkLmNoPqRsTuVwXyZ"
WORDS = "abcdefghijklmnopqrstuvwxyz0123456789 "
PATHS = "abcdefghij/._-"
EMOJI = "".join(chr(n) for n in range(0x1F300, 0x1F600))
ALPHABETS = [CJK, RARE_CJK, CAMEL, WORDS, PATHS, EMOJI, "a", " a", "\u0301", "\u202e", "`", "#\n"]
MIXTURES = [ALPHABETS[start::3] for start in range(3)]
"""Four scripts of each content: it is read as often as it is long."""


@pytest.fixture
async def front(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    """A stack that takes memories and derives nothing of them."""
    async with running_stack(database, nats_url, model_home(), ingest_role="api") as made:
        yield made


async def _remember(stack: Stack, content: str) -> None:
    body = {"content": content, "scope": "project/shop"}
    made = await stack.post("/v1/remember", body)
    assert made["status"] == "created"
    kept = await stack.get(f"/v1/memories/{made['id']}")
    assert kept["content"] == body["content"].strip() or made["redactions"]


@pytest.mark.timeout(240)
async def test_contents_of_any_script_up_to_the_limit_are_accepted(front: Stack) -> None:
    for alphabets in MIXTURES:
        content = "x" + _of_all(alphabets, LIMIT - 8) + "x"
        await _remember(front, content[: LIMIT - 8])
        await front.post("/v1/recall", {"query": content[:20_000]})


@pytest.mark.timeout(240)
async def test_a_content_of_many_scripts_up_to_the_limit_is_enriched(stack: Stack) -> None:
    """Most of it is one word, which takes a model no time."""
    scripts = "\n\n".join(_of(alphabet, 800) for alphabet in ALPHABETS)
    content = f"{'w' * (LIMIT - 100 - len(scripts.encode()))}\n\n{scripts}"
    assert LIMIT * 0.98 < len(content.encode()) <= LIMIT
    await _remember(stack, content)
    await stack.settled(200)
    chunks = "select count(*), max(stop) from chunk where tenant = %s"
    [(count, end)] = rows(stack.admin_url, chunks, stack.number())
    assert count > len(ALPHABETS)
    assert end > len(content) * 0.9


@pytest.mark.timeout(240)
async def test_turns_of_any_script_up_to_the_limit_are_accepted_and_dreamt(stack: Stack) -> None:
    started = await stack.post("/v1/sessions/start", {"agent": "a", "project": "shop"})
    for role, alphabets in zip(("user", "assistant", "user"), MIXTURES, strict=True):
        turns = [{"role": role, "content": "x" + _of_all(alphabets, TURN_LIMIT - 8) + "x"}]
        data = json.dumps({"session": started["session"], "turns": turns}, ensure_ascii=False)
        done = await stack.post("/v1/turns", json=None, data=data.encode())
        assert done["accepted"] == 1
    await stack.post(f"/v1/sessions/{started['session']}/end", {})
    await stack.settled()
    runs = (await stack.get("/v1/dreams"))["items"]
    assert {run["status"] for run in runs} == {"done"}


def _deep(levels: int) -> Any:
    return {"a": _deep(levels - 1)} if levels else 10**4000


async def test_every_field_may_be_as_long_as_its_limit(stack: Stack) -> None:
    path = "src/" + "\u6f22" * 339 + "/x"
    assert len(path.encode()) <= 1024
    body = {
        "content": f"see {path} and src/{'long' * 1500}/name.py and {'deep/' * 900}x.py",
        "scope": "project/shop",
        "key": "\U00020000" * 200,
        "summary": "s" * 60_000,
        "supersede_reason": "r" * 60_000,
        "tags": [f"{n:064}" for n in range(50)],
        "metadata": {"deep": _deep(28), "wide": {str(n): n for n in range(2000)}},
        "valid_from": "0001-01-02T00:00:00Z",
        "valid_to": "9999-12-29T23:59:59.999999-00:00",
        "git": {
            "branch": "\U00020000" * 200,
            "files": [path, *(f"src/f{n}.py" for n in range(199))],
            "lines": {path: [[0, 2**31 - 1]] * 50},
        },
    }
    made = await stack.post("/v1/remember", body)
    await stack.settled()
    kept = await stack.get(f"/v1/memories/{made['id']}")
    assert (kept["key"], kept["metadata"]) == (body["key"], body["metadata"])
    assert (kept["valid_from"][:10], kept["valid_to"][:10]) == ("0001-01-02", "9999-12-29")
    assert path in [near["label"] for near in kept["neighbours"]]
    change = {
        "project": "shop",
        "branch": "\U00020000" * 200,
        "default_branch": "\U00020000" * 200,
        "after": "a" * 64,
        "commits": [{"sha": "a" * 64, "committed_at": "9999-12-29T23:59:59-00:00"}],
        "files": [
            {"path": path, "status": "modified", "hunks": [[1, 2**31 - 2, 0, 0]]},
            {"path": path + "y", "old_path": path, "status": "renamed"},
        ],
    }
    await stack.post("/v1/git/changes", change)
    await stack.settled()
    [item] = (await stack.get("/v1/stale?project=shop"))["items"]
    assert item["memory"]["id"] == made["id"]
