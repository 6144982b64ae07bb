"""Commands of agents: what they see, how they end, and where they may be used."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reverie.domain.core.errors import Misconfigured
from reverie.runtime.settings.settings import Settings
from reverie.testing.chat_server import ChatAnswer, ToolUse
from reverie_services.engine.app import build_engine_settings
from reverie_services.engine.tools import sandbox
from reverie_services.engine.tools.sandbox import run_in_sandbox
from tests.engine.conftest import Engine


@pytest.fixture(scope="module", autouse=True)
def bubblewrap() -> None:
    try:
        tried = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
        subprocess.run(tried, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("bubblewrap does not run here")


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ENGINE_SECRET", "s3cr3t-value")
    return "s3cr3t-value"


async def test_a_command_works_in_its_folder(tmp_path: Path) -> None:
    told = await run_in_sandbox(tmp_path, "echo one > a.txt; cat a.txt; echo two >&2; exit 3")
    assert told == "one\ntwo\n\n(exit code 3)"
    assert (tmp_path / "a.txt").read_text() == "one\n"


async def test_a_command_sees_nothing_of_the_machine(tmp_path: Path, secret: str) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text(secret)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(outside)
    look = f"env; cat /proc/*/environ link ../outside.txt {outside} /etc/passwd; ls /home /root"
    told = await run_in_sandbox(inside, look)
    assert secret not in told
    assert "root:" not in told
    assert str(os.getpid()) not in (await run_in_sandbox(inside, "ls /proc")).split()
    assert "lo:" in (network := await run_in_sandbox(inside, "cat /proc/net/dev"))
    assert len(network.splitlines()) == 5
    assert "(exit code 0)" not in await run_in_sandbox(inside, "touch /usr/x")


async def test_a_command_without_end_is_stopped_and_its_output_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = await run_in_sandbox(tmp_path, "yes | head -c 1000000")
    assert told.endswith("\n(cut)\n(exit code 0)")
    assert len(told) < sandbox.MAX_OUTPUT_BYTES + 100
    monkeypatch.setattr(sandbox, "COMMAND_SECONDS", 0.2)
    told = await run_in_sandbox(tmp_path, "(sleep 600 &) ; yes; true")
    assert told.endswith("(stopped after 0 s)")


def test_it_is_refused_where_it_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Misconfigured, match="needs engine_folder"):
        build_engine_settings(Settings(engine_tools=["run_command"]))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Misconfigured, match="install it"):
        build_engine_settings(Settings(engine_tools=["run_command"], engine_folder=tmp_path))


async def test_a_person_approves_a_command_first(engine: Engine) -> None:
    call = ToolUse("run_command", {"command": "echo here > made.txt"})
    engine.play([ChatAnswer(calls=(call,)), ChatAnswer("It is made.")])
    group = await engine.group("beck")
    posted = await engine.post(group, "Make it.")
    seen = await engine.watch(group, posted["after"], until="approval")
    made = engine.folder / "made.txt"
    assert not made.exists()
    turn = await engine.turn(group, "beck", "waiting")
    decision = {"turn": turn["id"], "call": seen[-1]["data"]["call"], "approved": True}
    assert (await engine.call("POST", f"/v1/groups/{group}/approvals", decision)).status == 200
    await engine.ended(group, posted)
    assert made.read_text() == "here\n"
