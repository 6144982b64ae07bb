"""The Claude Code hooks on a running system."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import HookedAgent, hooked_agent
from tests.support.git_clone import Clone
from tests.support.stack import Stack, eventually


async def turns_of(stack: Stack, count: int, session: str = "") -> list[dict[str, Any]]:
    """The turns of the one session, or of the named one, once there are so many."""

    async def look() -> list[dict[str, Any]]:
        found = (await stack.get("/v1/sessions"))["items"]
        found = [one for one in found if session in {"", one["external_id"]}]
        assert len(found) <= 1, found
        if not found:
            return []
        items = (await stack.get(f"/v1/sessions/{found[0]['id']}/turns"))["items"]
        return items if len(items) >= count else []

    return await eventually(look)


async def test_a_session_receives_its_context_and_delivers_its_turns(
    stack: Stack, tmp_path: Path
) -> None:
    rule = "Prices are kept in cents (src/cart/price.py)."
    await stack.post(
        "/v1/remember", {"scope": "project/bookshop", "kind": "convention", "content": rule}
    )
    for n, shelf in enumerate(("novels", "atlases", "plays", "diaries", "letters")):
        more = f"Shelf {n} holds {shelf}: " + f"{shelf} are sorted by their authors' names. " * 7
        body = {"scope": "project/bookshop", "kind": "convention", "content": more}
        await stack.post("/v1/remember", body)
    agent = hooked_agent(stack, tmp_path)

    context = await agent.fire("SessionStart", source="startup", model="some-model")
    assert "<reverie-memory>" in context
    assert "Prices are kept in cents" in context
    assert len(context) > 1500

    asked = "Why do we keep prices in cents and not in euros?"
    assert await agent.fire("UserPromptSubmit", prompt=asked) == ""
    late = "Prices in euros are for display only: we never keep them, cents are kept."
    await stack.post(
        "/v1/remember", {"scope": "project/bookshop", "kind": "decision", "content": late}
    )

    async def get_reminder() -> str:
        return await agent.fire("UserPromptSubmit", prompt=asked)

    given = await eventually(get_reminder)
    assert "for display only" in given
    assert "Prices are kept in cents" not in given
    assert await get_reminder() == ""

    async def confirmed() -> bool:
        traces = (await stack.get("/v1/traces"))["items"]
        return [bool(one["delivered_at"]) for one in traces if one["given"]] == [True]

    await eventually(confirmed)
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


async def test_turns_from_an_outage_are_sent_later_and_once(stack: Stack, tmp_path: Path) -> None:
    agent = hooked_agent(stack, tmp_path)
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


async def test_an_edit_is_warned_about_and_the_fix_of_a_failure_is_remembered(
    stack: Stack, tmp_path: Path
) -> None:
    agent = hooked_agent(stack, tmp_path)
    clone = Clone(agent.folder, datetime.now(UTC) - timedelta(minutes=90))
    clone.git("init", "-q", "-b", "main")
    clone.commit("Keep prices in cents", {"src/cart/price.py": "CENTS = 100\n"})
    price = str(agent.folder / "src/cart/price.py")
    rule = "Prices in src/cart/price.py are kept in cents (`CENTS`), for floats lost money."
    await stack.post(
        "/v1/remember", {"scope": "project/bookshop", "kind": "decision", "content": rule}
    )

    async def lacking() -> list[dict[str, Any]]:
        return list((await stack.get("/v1/git/anchors?project=bookshop"))["items"])

    async def placed() -> bool:
        return not await lacking()

    await eventually(lacking)
    start = await agent.fire("SessionStart", source="startup")
    assert "kept in cents" in start
    await eventually(placed)
    change = {"file_path": price, "old_string": "a", "new_string": "b"}
    edit = {"tool_name": "Edit", "tool_input": change}

    async def warned() -> str:
        return await agent.fire("PreToolUse", **edit)

    assert await warned() == ""
    unstarted = HookedAgent(agent.folder, agent.env)

    async def warned_unstarted() -> str:
        return await unstarted.fire("PreToolUse", **edit)

    said = await eventually(warned_unstarted)
    assert rule in said
    assert said.startswith("<reverie-memory>")
    assert await warned_unstarted() == ""
    other = {"file_path": "/etc/passwd"}
    assert await agent.fire("PreToolUse", tool_name="Write", tool_input=other) == ""
    await agent.fire("PreCompact", trigger="auto", custom_instructions="")
    assert rule in await agent.fire("SessionStart", source="compact")
    assert await warned() == ""
    assert await agent.fire("UserPromptSubmit", prompt="Why are prices in cents?") == ""

    token = "ghp_" + "x7Kd92LmQp4RtVwYz3Bn" * 2
    why = f"Exit code 1\nE   KeyError: 'price_cents' ({token})"
    tests = {"command": "pytest -q tests/test_price.py"}
    agent.calls("Bash", tests, why, failed=True)
    await agent.fire("PostToolUse", tool_name="Bash", tool_input=tests, tool_response={})
    agent.calls("Edit", change, "The file has been updated.")
    await agent.fire("PostToolUse", **edit, tool_response={"success": True})
    await turns_of(stack, 2, agent.session)
    agent.calls("Bash", tests, "1 passed")
    await agent.fire("PostToolUse", tool_name="Bash", tool_input=tests, tool_response={})

    async def remembered() -> list[dict[str, Any]]:
        page = await stack.get("/v1/memories", params={"kind": "bug"})
        return list(page["items"])

    (bug,) = await eventually(remembered)
    assert "KeyError: 'price_cents'" in bug["content"]
    assert "src/cart/price.py" in bug["content"]
    assert bug["scope"].startswith("project/bookshop")
    assert token not in bug["content"]
    for one in (tmp_path / "home/hooks").iterdir():
        # What is being written may have its name by now.
        with suppress(FileNotFoundError):
            assert token not in one.read_text()

    clone.commit("Count in tenths of a cent", {"src/cart/price.py": "CENTS = 1000\n"})
    later = HookedAgent(agent.folder, agent.env)
    await later.fire("SessionStart", source="startup")
    unstarted = HookedAgent(agent.folder, agent.env)

    async def doubtful() -> list[dict[str, Any]]:
        found = (await stack.get("/v1/stale?project=bookshop"))["items"]
        return [one for one in found if "`CENTS`" in one["memory"]["content"]]

    [doubt] = await eventually(doubtful)
    assert (doubt["grade"], doubt["evidence"][0]["lines"]) == ("stale", [[1, 1]])
    assert "Count in tenths" in str(doubt)
    # On a busy machine, a first answer may come after 150 ms; the next call asks again.
    assert "⚠ stale" in await eventually(lambda: unstarted.fire("PreToolUse", **edit))


async def test_what_a_compacted_session_begins_with_is_not_repeated_for_a_late_answer(
    stack: Stack, tmp_path: Path
) -> None:
    agent = hooked_agent(stack, tmp_path)
    gateway = agent.env["REVERIE_GATEWAY_URL"]
    rule = "Prices in src/cart/price.py are kept in cents, for floats lost money."
    body = {"scope": "project/bookshop", "kind": "decision", "content": rule}
    await stack.post("/v1/remember", body)
    await agent.fire("SessionStart", source="startup")
    change = {"file_path": str(agent.folder / "src/cart/price.py"), "old_string": "a"}
    edit = {"tool_name": "Edit", "tool_input": {**change, "new_string": "b"}}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        agent.env["REVERIE_GATEWAY_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert await agent.fire("PreToolUse", **edit) == ""
    agent.env["REVERIE_GATEWAY_URL"] = gateway
    await agent.fire("PreCompact", trigger="auto", custom_instructions="")
    assert rule in await agent.fire("SessionStart", source="compact")
    assert await agent.fire("PreToolUse", **edit) == ""


async def test_a_hook_prints_nothing_where_nothing_is_relevant(
    stack: Stack, tmp_path: Path
) -> None:
    agent = hooked_agent(stack, tmp_path)

    async def printed(event: str, **payload: Any) -> str:
        code, out, err = await agent.run(event, json.dumps(agent.payload(event, **payload)))
        assert (code, err) == (0, "")
        return out

    assert await printed("SessionStart", source="startup") == ""
    body = {"scope": "project/bookshop", "kind": "lesson"}
    await stack.post("/v1/remember", {**body, "content": "Carts expire after a week."})
    assert await printed("UserPromptSubmit", prompt="How do I bake sourdough bread?") == ""
    ran = {"tool_name": "Bash", "tool_input": {"command": "make release"}}
    assert await printed("PreToolUse", **ran) == ""


async def test_a_command_is_warned_about_once_and_a_slow_gateway_stalls_nothing(
    stack: Stack, tmp_path: Path
) -> None:
    agent = hooked_agent(stack, tmp_path)
    bug = "`make release` failed: the tag existed. Delete the tag `v0` first."
    body = {"scope": "project/bookshop", "kind": "bug", "content": bug}
    await stack.post("/v1/remember", body)
    ran = {"tool_name": "Bash", "tool_input": {"command": "cd app && make release V=1"}}

    async def warned() -> str:
        return await agent.fire("PreToolUse", **ran)

    assert bug in await eventually(warned)
    assert await warned() == ""

    async def confirmed() -> bool:
        traces = (await stack.get("/v1/traces"))["items"]
        return any(one["delivered_at"] for one in traces if one["given"])

    await eventually(confirmed)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        agent.env["REVERIE_GATEWAY_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        # The hook gives up after 150 ms. If it did not, it would outlast the test.
        given = json.dumps(agent.payload("PreToolUse", **ran))
        assert await agent.run("PreToolUse", given, "--seconds=600") == (0, "", "")


async def test_sub_agents_and_agents_without_a_transcript_are_supported(
    stack: Stack, tmp_path: Path
) -> None:
    agent = hooked_agent(stack, tmp_path)
    helper = HookedAgent(agent.folder, agent.env)
    helper.says("user", "Review src/cart/price.py.")
    helper.says("assistant", "Finding: the rounding in src/cart/price.py loses a cent.")
    await agent.fire(
        "SubagentStop",
        agent_id="a1b2",
        agent_type="code-reviewer",
        agent_transcript_path=str(helper.transcript),
    )
    codex = HookedAgent(agent.folder, dict(agent.env), options=("--agent", "codex"))
    down = HookedAgent(
        agent.folder,
        {**agent.env, "REVERIE_GATEWAY_URL": "http://127.0.0.1:9"},
        session=codex.session,
        options=codex.options,
    )
    token = "ghp_" + "x7Kd92LmQp4RtVwYz3Bn" * 2
    await down.fire("UserPromptSubmit", prompt=f"Release it with {token}.")
    notes = tmp_path / "home" / "hooks"

    async def kept() -> list[Path]:
        return [path for path in notes.glob("codex*.spool") if path.read_text()]

    (spool,) = await eventually(kept)
    assert token not in spool.read_text()
    assert spool.stat().st_mode & 0o077 == 0
    ran = {"tool_name": "shell", "tool_input": {"command": "make release"}}
    await codex.fire("PostToolUse", **ran, tool_response={"output": "released v1.2"})
    await codex.fire("Stop", last_assistant_message="Released v1.2.")

    async def sessions() -> dict[str, dict[str, Any]]:
        found = {one["agent"]: one for one in (await stack.get("/v1/sessions"))["items"]}
        turns = found.get("codex", {}).get("turns", 0)
        return found if len(found) == 2 and turns == 3 else {}

    found = await eventually(sessions)
    sub = found["claude-code/sub/code-reviewer"]
    assert (sub["turns"], bool(sub["ended_at"])) == (2, True)
    turns = (await stack.get(f"/v1/sessions/{found['codex']['id']}/turns"))["items"]
    assert {one["role"] for one in turns} == {"user", "tool", "assistant"}
    assert not spool.exists()


async def test_an_agent_that_closed_its_streams_gets_no_traceback(tmp_path: Path) -> None:
    env = {**os.environ, "REVERIE_HOME": str(tmp_path / "home")}
    words = (sys.executable, "-m", "reverie.cli.app.entrypoint", "hook", "SessionStart")
    hook = await asyncio.create_subprocess_exec(
        *("sh", "-c", 'exec "$@" >&-', "sh", *words),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )
    _, said = await hook.communicate(b'{"session_id": "s", "cwd": "/"}')
    assert (hook.returncode, said) == (0, b"")


async def test_odd_characters_of_an_event_do_not_lose_the_turn(
    stack: Stack, tmp_path: Path
) -> None:
    agent = hooked_agent(stack, tmp_path)
    agent.env["REVERIE_LOG_LEVEL"] = "debug"
    event = {
        "session_id": "odd \ud800",
        "cwd": f"{tmp_path}\0x",
        "prompt": "Which package manager \ud800 do we use \0 here?",
    }
    assert (await agent.run("UserPromptSubmit", json.dumps(event)))[2] == ""
    await turns_of(stack, 1)


@pytest.mark.parametrize("seconds", ["abc", "nan", "-1", "inf"])
async def test_a_hook_refuses_a_time_that_is_none(seconds: str, tmp_path: Path) -> None:
    agent = HookedAgent(tmp_path, {"REVERIE_HOME": str(tmp_path / "home")})
    code, out, err = await agent.run("SessionStart", "{}", "--seconds", seconds)
    assert (code, out) == (1, "")
    assert seconds in err
