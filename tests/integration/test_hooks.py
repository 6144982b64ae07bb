"""The hooks of Claude Code, each as the agent calls it, against a running system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.hooks import HookedAgent
from tests.stack import Stack, eventually


def hooked(stack: Stack, folder: Path) -> HookedAgent:
    """An agent in a folder named bookshop."""
    work = folder / "bookshop"
    work.mkdir(parents=True)
    env = {"REVERIE_GATEWAY_URL": stack.url, "REVERIE_API_KEY": stack.key}
    return HookedAgent(work, {**env, "REVERIE_HOME": str(folder / "home")})


async def turns_of(stack: Stack, count: int) -> list[dict[str, Any]]:
    """The turns of the one session, once there are so many."""

    async def look() -> list[dict[str, Any]]:
        found = (await stack.get("/v1/sessions"))["items"]
        assert len(found) <= 1, found
        if not found:
            return []
        items = (await stack.get(f"/v1/sessions/{found[0]['id']}/turns"))["items"]
        return items if len(items) >= count else []

    return await eventually(look)


async def test_a_session_is_given_what_it_needs_and_hands_over_what_was_said(
    stack: Stack, tmp_path: Path
) -> None:
    rule = "Prices are kept in cents (src/cart/price.py)."
    await stack.post(
        "/v1/remember", {"scope": "project/bookshop", "kind": "convention", "content": rule}
    )
    agent = hooked(stack, tmp_path)

    context = await agent.fire("SessionStart", source="startup", model="some-model")
    assert "<reverie-memory>" in context
    assert "Prices are kept in cents" in context

    asked = "Why do we keep prices in cents and not in euros?"
    given = await agent.fire("UserPromptSubmit", prompt=asked)
    assert "Prices are kept in cents" in given
    assert await agent.fire("UserPromptSubmit", prompt=asked) == ""
    agent.says("user", f"{asked}\n<system-reminder>{given}</system-reminder>")
    agent.calls("Bash", {"command": "ls -la src"}, "cart\nmain.py")
    failed = agent.calls("Bash", {"command": "pytest -q"}, "Exit code 1\nE   KeyError", failed=True)
    agent.calls("mcp__reverie__recall", {"query": "cents"}, given)
    agent.says("assistant", "Decision: prices stay in cents, because floats lost money.")
    await agent.fire("Stop", stop_hook_active=False)
    found = await turns_of(stack, 3)
    assert [(one["role"], one["tool"]) for one in found] == [
        ("user", None),
        ("tool", "Bash"),
        ("assistant", None),
    ]
    assert found[0]["content"] == asked
    assert found[1]["external_id"] == failed
    assert "KeyError" in found[1]["content"]

    agent.says("user", "Thanks, that is all for today.")
    await agent.fire("SessionEnd", reason="prompt_input_exit")
    found = await turns_of(stack, 4)
    assert len(found) == 4

    async def ended() -> bool:
        one = (await stack.get("/v1/sessions"))["items"][0]
        assert (one["agent"], one["project"]) == ("claude-code", "bookshop")
        assert one["external_id"] == agent.session
        return one["ended_at"] is not None

    await eventually(ended)

    again = await agent.fire("SessionStart", source="resume")
    assert "Prices are kept in cents" in again
    agent.says("user", "One more thing.")
    await agent.fire("Stop", stop_hook_active=False)
    assert len(await turns_of(stack, 5)) == 5


async def test_what_was_said_while_reverie_was_away_is_sent_later_and_once(
    stack: Stack, tmp_path: Path
) -> None:
    agent = hooked(stack, tmp_path)
    there = dict(agent.env)
    agent.env["REVERIE_GATEWAY_URL"] = "http://127.0.0.1:9"
    token = "ghp_" + "x7Kd92LmQp4RtVwYz3Bn" * 2
    assert await agent.fire("SessionStart", source="startup") == ""
    assert await agent.fire("UserPromptSubmit", prompt=f"Use the token {token}") == ""
    agent.says("user", f"Use the token {token} for the release.")
    agent.says("assistant", "Done: v1.2 is released.")
    await agent.fire("Stop", stop_hook_active=False)
    await agent.fire("SessionEnd", reason="other")
    notes = tmp_path / "home" / "hooks"

    async def waits() -> bool:
        return any(notes.glob("*.waits"))

    await eventually(waits)
    for path in notes.iterdir():
        assert path.stat().st_mode & 0o077 == 0
        assert token not in path.read_text()

    other = HookedAgent(agent.folder, there)
    await other.fire("SessionStart", source="startup")

    async def all_sent() -> bool:
        return not any(notes.glob("*.waits"))

    await eventually(all_sent)
    sessions = (await stack.get("/v1/sessions"))["items"]
    late = next(one for one in sessions if one["external_id"] == agent.session)
    assert late["ended_at"]
    turns = (await stack.get(f"/v1/sessions/{late['id']}/turns"))["items"]
    assert [one["role"] for one in turns] == ["user", "assistant"]
    assert token not in str(turns)


async def test_a_hook_never_fails_its_agent(tmp_path: Path) -> None:
    agent = HookedAgent(tmp_path, {"REVERIE_HOME": str(tmp_path / "home")})
    for stdin in ("", "no json", "[]", '{"session_id": 7, "prompt": {}, "cwd": "/nowhere"}'):
        assert await agent.run("UserPromptSubmit", stdin) == (0, "", "")
    (tmp_path / "file").write_text("")
    agent.env["REVERIE_HOME"] = str(tmp_path / "file" / "home")
    assert await agent.run("SessionStart", "{}") == (0, "", "")
    code, out, err = await agent.run("Sesion", "{}")
    assert (code, out) == (1, "")
    assert "no such hook" in err
