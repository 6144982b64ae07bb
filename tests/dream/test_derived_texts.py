"""Texts that quote a memory follow it when it is forgotten or edited."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dream.test_dream_routes import _begin, _runs, _say
from tests.support.stack import Stack, eventually

SCOPE = "project/shop"
SAID = (
    ("user", "We decided to keep prices as integers of cents in src/money.py, never floats."),
    ("assistant", "Noted: prices are integers of cents in src/money.py from now on."),
    ("user", "Always run the linter before a commit."),
    ("assistant", "I will always run the linter before a commit."),
    ("user", "The importer in src/importer.py stops at noon. Why?"),
    ("assistant", "Root cause: src/importer.py reads the hour as twelve-hour time."),
    ("user", "The labels of parcels are printed without their country. Why?"),
    ("assistant", "Root cause: src/label.py cuts an address after its fourth line."),
)
IMPORTED = "The importer of the warehouse streams parquet"


async def _shown(stack: Stack) -> dict[str, str]:
    """What each interface shows of the scope, by its name."""
    session = await _begin(stack)
    question = "what about prices and the linter in a commit?"
    preflow = {"session": session, "query": question, "include_seen": True}
    return {
        "summaries": str(await stack.get(f"/v1/dream/summaries?scope={SCOPE}")),
        "history": str(await stack.get(f"/v1/dream/summaries/history?scope={SCOPE}")),
        "context": str(await stack.get("/v1/context?project=shop")),
        "recall": str(await stack.post("/v1/recall", {"query": "prices linter parquet"})),
        "preflow": str(await stack.post("/v1/preflow", preflow)),
        "jsonl": await _exported(stack, "jsonl"),
        "markdown": await _exported(stack, "markdown"),
    }


async def _exported(stack: Stack, format: str) -> str:
    headers = {"Authorization": f"Bearer {stack.key}"}
    url = f"{stack.url}/v1/export?format={format}&scope={SCOPE}"
    async with stack.http.get(url, headers=headers) as answer:
        assert answer.status == 200
        return "\n".join(
            line
            for line in (await answer.text()).splitlines()
            if not line.startswith(('{"v"', '{"type": "turn"', '{"type": "memory_version"'))
            and '"type": "memory_version"' not in line
            and '"type": "turn"' not in line
        )


async def _dreamt(stack: Stack) -> list[dict[str, Any]]:
    before = len(await _runs(stack))
    session = await _begin(stack)
    await _say(stack, session, *SAID)
    await stack.post(f"/v1/sessions/{session}/end", None)

    async def done() -> bool:
        return len(await _runs(stack)) > before

    await eventually(done)
    return list((await stack.get(f"/v1/memories?scope={SCOPE}"))["items"])


async def test_a_forgotten_or_edited_text_leaves_all_that_quotes_it_at_once(
    stack: Stack,
) -> None:
    """Every second memory is forgotten, the others are edited."""
    memories = await _dreamt(stack)
    assert memories
    before = await _shown(stack)
    assert len(memories) > 3
    for number, memory in enumerate(memories):
        line = " ".join(memory["content"].split("\n- ")[0].split())[:60]
        assert any(line in text for text in before.values()), line
        path = f"/v1/memories/{memory['id']}"
        if number % 2:
            assert (await stack.call("DELETE", path)).status == 200
        else:
            body = {"content": f"Nothing of that {memory['short_id']}", "summary": ""}
            assert (await stack.call("PATCH", path, body)).status == 200
    after = await _shown(stack)
    history = after.pop("history")
    for number, memory in enumerate(memories):
        if number % 2 == 0:
            continue  # The history says what was said before an edit.
        assert " ".join(memory["content"].split("\n- ")[0].split())[:60] not in history
    for memory in memories:
        for line in memory["content"].split("\n- "):
            quoted = " ".join(line.split())[:60]
            assert [name for name, text in after.items() if quoted in text] == [], quoted


async def test_an_imported_summary_follows_an_edit(stack: Stack) -> None:
    made = await stack.post("/v1/remember", {"content": IMPORTED, "scope": SCOPE})
    line = (
        '{"type": "header", "format": "reverie", "version": 1}\n'
        f'{{"type": "summary", "scope": "{SCOPE}", "content": "## Context\\n- {IMPORTED}",'
        ' "tokens": 9, "updated": "2026-01-01T00:00:00Z", "version": 1}\n'
    )
    headers = {"Authorization": f"Bearer {stack.key}", "Content-Type": "application/x-ndjson"}
    async with stack.http.post(f"{stack.url}/v1/import", data=line, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
    assert IMPORTED in (await _shown(stack))["summaries"]
    await stack.call("PATCH", f"/v1/memories/{made['id']}", {"content": "It streams arrow"})
    assert [name for name, text in (await _shown(stack)).items() if IMPORTED in text] == []


async def _active(stack: Stack, kind: str) -> list[dict[str, Any]]:
    return list((await stack.get(f"/v1/memories?scope={SCOPE}&kind={kind}"))["items"])


async def test_the_memory_of_a_session_is_forgotten_with_what_it_quotes(stack: Stack) -> None:
    memories = await _dreamt(stack)
    learned = [memory for memory in memories if memory["kind"] != "session"]
    [session] = [memory for memory in memories if memory["kind"] == "session"]
    quoted = next(memory for memory in learned if "prices" in memory["content"])
    reader = stack.key_of(reads=("*",), writes=("project/else",))
    assert (await stack.call("DELETE", f"/v1/memories/{quoted['id']}", key=reader)).status == 403
    assert (await stack.call("DELETE", f"/v1/memories/{quoted['id']}")).status == 200
    assert await _active(stack, "session") == []
    # What else was learned in it stays.
    left = [memory["id"] for memory in learned if "prices" not in memory["content"]]
    for memory in left:
        assert (await stack.call("GET", f"/v1/memories/{memory}")).status == 200
    # The session goes on, and its memory does not come back.
    before = len(await _runs(stack))
    named = (await stack.get(f"/v1/sessions?session={session['provenance']['session']}"))["items"]
    await _say(stack, named[0]["id"], ("user", "We decided to ship on Fridays, because of Ann."))
    await stack.post(f"/v1/sessions/{named[0]['id']}/end", None)

    async def done() -> bool:
        return len(await _runs(stack)) > before

    await eventually(done)
    assert await _active(stack, "session") == []


@pytest.mark.parametrize("change", ["forgotten", "edited"])
async def test_a_convention_follows_the_memory_that_it_was_made_of(
    stack: Stack, change: str
) -> None:
    text = "Amounts are integers of cents"
    git = {"commit": "a" * 40, "files": ["AGENTS.md"]}
    body = {"content": text, "kind": "decision", "scope": SCOPE, "git": git}
    made = await stack.post("/v1/remember", body)
    await stack.post("/v1/maintenance/run", {})
    [convention] = await _active(stack, "convention")
    assert convention["content"] == text
    path = f"/v1/memories/{made['id']}"
    if change == "forgotten":
        assert (await stack.call("DELETE", path)).status == 200
    else:
        assert (await stack.call("PATCH", path, {"content": "They are decimals"})).status == 200
    assert await _active(stack, "convention") == []
    shown = await _shown(stack)
    if change == "edited":
        del shown["jsonl"]  # of what is archived, too
    assert [name for name, content in shown.items() if text in content] == []
