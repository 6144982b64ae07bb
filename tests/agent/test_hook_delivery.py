"""Turns that hooks deliver while the gateway refuses some of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from reverie.domain.access.principals import KeyRole
from tests.support.commands import HookedAgent
from tests.support.stack import Stack, eventually

NOWHERE = "http://127.0.0.1:9"


def hooked(home: Path, project: str, session: str, **env: str) -> HookedAgent:
    """An agent in a folder named like its project."""
    folder = home.parent / project
    folder.mkdir(exist_ok=True)
    return HookedAgent(folder, {"REVERIE_HOME": str(home), **env}, session)


async def test_a_refused_session_does_not_block_the_delivery_of_others(
    stack: Stack, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    key = stack.key_of(role=KeyRole.WRITER, reads=["project/mill"], writes=["project/mill"])
    away = {"REVERIE_GATEWAY_URL": NOWHERE, "REVERIE_API_KEY": key}
    for project, session in (("abbey", "a-first"), ("mill", "b-second")):
        agent = hooked(home, project, session, **away)
        agent.says("user", f"The {project} opens at nine.")
        await agent.fire("SessionEnd", reason="other")

    async def waiting(count: int) -> list[str]:
        found = sorted(path.name for path in (home / "hooks").glob("*.waits"))
        return found if len(found) == count else []

    await eventually(lambda: waiting(2))
    there = {"REVERIE_GATEWAY_URL": stack.url, "REVERIE_API_KEY": key}
    await hooked(home, "mill", "c-third", **there).fire("SessionStart", source="startup")
    (left,) = await eventually(lambda: waiting(1))
    assert "a-first" in left
    sessions = (await stack.get("/v1/sessions"))["items"]
    late = next(one for one in sessions if one["external_id"] == "b-second")
    assert late["turns"] == 1
    assert late["ended_at"]


async def test_a_session_that_repeats_another_is_delivered_completely(
    stack: Stack, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    env = {"REVERIE_GATEWAY_URL": stack.url, "REVERIE_API_KEY": stack.key}
    first = hooked(home, "mill", "first", **env)
    tests, wheel = {"command": "pytest -q"}, {"file_path": str(first.folder / "wheel.py")}
    first.calls("Bash", tests, "Exit code 1\nE   KeyError: 'wheel'", failed=True)
    first.calls("Edit", wheel, "updated")
    first.calls("Bash", tests, "3 passed")
    await first.fire("SessionEnd", reason="other")

    async def bugs() -> int:
        return len((await stack.get("/v1/memories", params={"kind": "bug"}))["items"])

    await eventually(bugs)
    second = hooked(home, "mill", "second", **env)
    shutil.copy(first.transcript, second.transcript)
    second.says("user", "Now the sluice, please.")
    await second.fire("SessionEnd", reason="other")

    async def ended() -> bool:
        found = (await stack.get("/v1/sessions"))["items"]
        return any(one["external_id"] == "second" and one["ended_at"] for one in found)

    await eventually(ended)
    assert not list((home / "hooks").glob("*.waits"))
    assert await bugs() == 1


async def test_a_conversation_in_any_script_with_any_bytes_is_delivered_whole(
    stack: Stack, tmp_path: Path
) -> None:
    env = {"REVERIE_GATEWAY_URL": stack.url, "REVERIE_API_KEY": stack.key}
    agent = hooked(tmp_path / "home", "mill", "long", **env)
    for n in range(6):
        agent.says("assistant", f"{n}: " + "水車を直しました。" * 2_000)
    agent.says("user", "What does a NUL\0 do here, and half a pair \ud83d?")
    agent.says("assistant", "Nothing.")
    await agent.fire("SessionEnd", reason="other")

    async def ended() -> dict[str, Any]:
        found = (await stack.get("/v1/sessions"))["items"]
        return found[0] if found and found[0]["ended_at"] else {}

    session = await eventually(ended)
    assert session["turns"] == 8
    turns = await stack.walked(f"/v1/sessions/{session['id']}/turns", 50)
    assert "What does a NUL\ufffd do here" in turns[-2]["content"]
    assert turns[-1]["content"] == "Nothing."
