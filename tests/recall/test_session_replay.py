"""A session is replayed step by step, with the memories recalled and made at each turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reverie.domain.access.principals import KeyRole
from tests.support.commands import command
from tests.support.stack import Stack

RULE = "Prices are kept in cents, because floats lost money (src/price.py)."
ASKED = "Why do we keep prices in cents and not in euros?"
OUTPUT = json.dumps({"command": "pytest -q"}) + "\n```\n" + "\n".join(
    f"tests/test_price.py::test_rounding_of_lot_{number} PASSED" for number in range(90)
) + "\n```"  # fmt: skip
DECISION = "Decision: the sluice gate stays shut in winter, because the dam leaks there."


async def a_session(stack: Stack, project: str = "mill") -> str:
    """A session that was given a memory, ran a tool and decided something."""
    scope = f"project/{project}"
    await stack.post("/v1/remember", {"scope": scope, "kind": "decision", "content": RULE})
    await stack.settled()
    start = {"agent": "ann", "project": project, "include_context": False}
    session = str((await stack.post("/v1/sessions/start", start))["session"])
    await say(stack, session, "user", ASKED)
    await stack.post("/v1/preflow", {"session": session, "query": ASKED})
    await say(stack, session, "tool", OUTPUT, tool="Bash")
    await say(stack, session, "assistant", DECISION)
    await stack.post(f"/v1/sessions/{session}/end", {})
    await stack.settled()
    return session


async def say(stack: Stack, session: str, role: str, content: str, **fields: str) -> None:
    turn = {"role": role, "content": content, **fields}
    await stack.post("/v1/turns", {"session": session, "turns": [turn]})


async def replay(stack: Stack, session: str, **how: Any) -> list[dict[str, Any]]:
    return list((await stack.get(f"/v1/sessions/{session}/replay", **how))["items"])


async def test_a_replay_shows_what_memory_gave_and_took(stack: Stack, tmp_path: Path) -> None:
    session = await a_session(stack)
    steps = await replay(stack, session)
    assert [step["turn"]["role"] for step in steps] == ["user", "tool", "assistant"]
    (recall,) = steps[0]["recalls"]
    assert (recall["query"], recall["given"]) == (ASKED, 1)
    assert [memory["label"] for memory in recall["memories"]] == [RULE]
    assert steps[1]["recalls"] == steps[2]["recalls"] == []
    assert steps[1]["turn"]["output"] == OUTPUT
    assert len(steps[1]["turn"]["content"]) < len(OUTPUT)
    assert steps[0]["turn"]["output"] is None
    learned = [memory for step in steps for memory in step["memories"] if memory["learned"]]
    assert any("sluice" in memory["label"] for memory in learned)

    pages, cursor = [], ""
    while cursor is not None:
        query = f"limit=1&cursor={cursor}" if cursor else "limit=1"
        page = await stack.get(f"/v1/sessions/{session}/replay?{query}")
        pages += page["items"]
        cursor = page.get("next")
    assert pages == steps

    env = {
        "REVERIE_GATEWAY_URL": stack.url,
        "REVERIE_API_KEY": stack.key,
        "REVERIE_HOME": str(tmp_path),
    }
    code, shown, err = await command(env, "sessions", session, "--replay")
    assert code == 0, err
    assert "test_rounding_of_lot_89" in shown
    assert f"asked: {ASKED} (1 given)" in shown
    assert "learned:" in shown
    assert (await command(env, "sessions", "--replay"))[0] == 2


async def test_a_replay_shows_no_memory_that_the_key_may_not_read(stack: Stack) -> None:
    session = await a_session(stack)
    key = stack.key_of(role=KeyRole.READER, reads=["session/*"], writes=[])
    refused = await stack.call("GET", f"/v1/sessions/{session}/replay", key=key)
    assert refused.status == 404
    writer = stack.key_of(role=KeyRole.WRITER, reads=["project/mill"], writes=["project/mill"])
    steps = (await stack.call("GET", f"/v1/sessions/{session}/replay", key=writer)).body["items"]
    scopes = {
        memory["scope"]
        for step in steps
        for memory in [*step["memories"], *(m for r in step["recalls"] for m in r["memories"])]
    }
    assert scopes == {"project/mill"}


async def test_a_kept_output_holds_no_secret_and_nothing_that_was_erased(stack: Stack) -> None:
    token = "ghp_" + "x7Kd92LmQp4RtVwYz3Bn" * 2
    secret_word = "The harbour master keeps the spare key under the third bollard."
    start = {"agent": "ann", "project": "mill", "include_context": False}
    session = str((await stack.post("/v1/sessions/start", start))["session"])
    lines = [f"line {number}: {token}" for number in range(60)]
    await say(stack, session, "tool", "\n".join([*lines, secret_word]), tool="Bash")
    (step,) = await replay(stack, session)
    assert token not in str(step)
    assert secret_word in step["turn"]["output"]
    made = await stack.post("/v1/remember", {"scope": "project/mill", "content": secret_word})
    await stack.settled()
    await stack.post(f"/v1/memories/{made['id']}/erase", {})
    (step,) = await replay(stack, session)
    assert secret_word not in str(step)
    assert "line 3" in step["turn"]["output"]


async def test_a_long_output_keeps_its_beginning_and_its_end(stack: Stack) -> None:
    start = {"agent": "ann", "project": "mill", "include_context": False}
    session = str((await stack.post("/v1/sessions/start", start))["session"])
    await say(stack, session, "tool", f"FIRST{'.' * 40_000}LAST", tool="Bash")
    (step,) = await replay(stack, session)
    output = step["turn"]["output"]
    assert (len(output), output[:5], output[-4:]) == (16_000, "FIRST", "LAST")
