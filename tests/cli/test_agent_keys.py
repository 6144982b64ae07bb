"""`reverie setup` gives an agent a key of its own; hooks and MCP use it in place of the first."""

# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock
import pytest

from reverie.agent.gateway.agent_keys import find_agent_key
from reverie.agent.hooks.command import connect_gateway
from reverie.cli.app.errors import NOT_PERMITTED
from reverie.cli.app.gateway_search import find_gateway
from reverie.cli.app.local_gateway import LocalGateway
from reverie.runtime.settings.settings import Settings
from tests.support.commands import HookedAgent, command
from tests.support.stack import Stack, eventually


class Machine:
    """A home folder on which the stack runs, with its first key, and a project beside it."""

    def __init__(self, folder: Path, stack: Stack) -> None:
        self.home, self.project = folder / "home", folder / "shop"
        self.env = {"REVERIE_HOME": str(self.home), "HOME": str(folder / "me")}
        for path in (self.home / "run", self.home / "secrets", self.project):
            path.mkdir(parents=True)
        (self.home / "secrets/api_key").write_text(stack.key)
        (self.home / "run/up.json").write_text(json.dumps({"gateway": stack.url}))

    async def setup(self, *words: str, agent: str = "claude-code") -> dict[str, Any]:
        """The JSON of a setup that was written."""
        options = ["-C", str(self.project), "--yes", "--json", *words]
        code, printed, error = await command(self.env, "setup", agent, *options)
        assert code == 0, error
        result: dict[str, Any] = json.loads(printed)
        return result

    def key_id(self) -> str:
        """The id of the key of Claude Code in the project."""
        return str(json.loads((self.home / "secrets/agents/claude-code@shop").read_text())["id"])

    def key(self, agent: str = "claude-code", project: str = "shop") -> str:
        return find_agent_key(str(self.home), agent, project)


@pytest.fixture
def machine(tmp_path: Path, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    for name in ("REVERIE_API_KEY", "REVERIE_GATEWAY_URL"):
        monkeypatch.delenv(name, raising=False)
    machine = Machine(tmp_path, stack)
    monkeypatch.chdir(machine.project)
    with (machine.home / "run/up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield machine


async def test_an_agent_gets_a_writer_s_key_that_is_bound_to_it_and_its_project(
    machine: Machine, stack: Stack
) -> None:
    report = (await machine.setup())["key"]
    file = Path(report["file"])
    assert file == machine.home / "secrets/agents/claude-code@shop"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    key = machine.key()
    assert key not in {"", stack.key}
    stored = await stack.get(f"/v1/admin/keys/{machine.key_id()}")
    assert (stored["role"], stored["agent"], stored["project"]) == ("writer", "claude-code", "shop")
    assert "*" not in stored["writes"]
    for path in machine.project.rglob("*"):
        assert not path.is_file() or "rv_" not in path.read_text()
    assert "rv_" not in json.dumps(report)

    mine = {**machine.env, "REVERIE_API_KEY": key, "REVERIE_GATEWAY_URL": stack.url}
    for scope, expected in (("project/shop", 0), ("project/other", NOT_PERMITTED)):
        code, _, _ = await command(mine, "remember", "We deploy on Thursdays.", "--scope", scope)
        assert code == expected, scope
    assert (await command(mine, "recall", "deploy", "--scope", "project/other"))[0] == NOT_PERMITTED
    assert (await stack.call("GET", "/v1/admin/keys", key=key)).status == 403


async def test_hooks_and_mcp_use_the_agent_s_key_and_others_the_first(
    machine: Machine, stack: Stack
) -> None:
    await machine.setup()
    own = machine.key()
    server = json.loads((machine.project / ".mcp.json").read_text())["mcpServers"]["reverie"]
    assert server["args"] == ["mcp", "--agent", "claude-code", "--project", "shop"]
    settings = Settings(home=machine.home)
    location = find_gateway(settings, "claude-code", "shop")
    assert location is not None
    assert location.key == own
    for owner, expected_status in ((("claude-code", "shop"), 403), ((), 200)):
        server_side = LocalGateway(settings, (), *owner)
        assert (await server_side("GET", "/v1/admin/keys"))[0] == expected_status
        await server_side.close()
    assert "REVERIE_API_KEY" not in machine.env
    for agent, project, expected in (
        ("claude-code", "shop", own),
        ("claude-code", "other", stack.key),
        ("codex", "shop", stack.key),
        ("../../api_key", "", stack.key),
        ("claude-code", "../x", stack.key),
    ):
        gateway = connect_gateway(machine.env, 3, agent, project)
        assert gateway is not None
        assert gateway._headers["Authorization"] == f"Bearer {expected}"


async def test_the_first_key_in_the_environment_is_not_the_agent_s(
    machine: Machine, stack: Stack
) -> None:
    """As after `export REVERIE_API_KEY=$(cat ~/.reverie/secrets/api_key)`."""
    machine.env["REVERIE_API_KEY"] = stack.key
    report = (await machine.setup())["key"]
    assert report["file"] == str(machine.home / "secrets/agents/claude-code@shop")
    for agent, expected in (("claude-code", machine.key()), ("codex", stack.key)):
        gateway = connect_gateway(machine.env, 3, agent, "shop")
        assert gateway is not None
        assert gateway._headers["Authorization"] == f"Bearer {expected}"


async def test_a_session_and_its_sub_agent_are_delivered_with_the_agent_s_key(
    machine: Machine, stack: Stack
) -> None:
    await machine.setup()
    agent = HookedAgent(machine.project, machine.env, options=("--project", "shop"))
    assert await agent.fire("SessionStart", source="startup") is not None
    agent.says("user", "We keep prices in cents, because floats lost money.")
    await agent.fire("Stop", stop_hook_active=False)
    helper = machine.project / "helper.jsonl"
    helper.write_text(agent.transcript.read_text())
    await agent.fire(
        "SubagentStop", agent_transcript_path=str(helper), agent_type="explore", agent_id="a1"
    )
    await agent.fire("SessionEnd", reason="other")

    async def delivered() -> bool:
        sessions = (await stack.get("/v1/sessions"))["items"]
        agents = {session["agent"] for session in sessions if session["ended_at"]}
        return agents == {"claude-code", "claude-code/sub/explore"}

    await eventually(delivered)
    assert not list((machine.home / "hooks").glob("*.waits"))


async def test_a_second_setup_keeps_the_key_and_a_new_one_ends_the_old(
    machine: Machine, stack: Stack
) -> None:
    await machine.setup()
    first = machine.key()
    assert "as before" in (await machine.setup())["key"]["text"]
    assert machine.key() == first
    assert "replaced" in (await machine.setup("--new-key"))["key"]["text"]
    second = machine.key()
    assert second not in {"", first}
    await stack.call("DELETE", f"/v1/admin/keys/{machine.key_id()}")
    assert "Its own key" in (await machine.setup())["key"]["text"]
    assert machine.key() not in {"", first, second}


async def test_undo_revokes_the_key_and_deletes_its_file(machine: Machine, stack: Stack) -> None:
    path = Path((await machine.setup())["key"]["file"])
    key_id = machine.key_id()
    settings = machine.project / ".claude/settings.json"
    written = settings.read_text()
    settings.write_text(f"{written}\n")
    words = ["setup", "claude-code", "-C", str(machine.project), "--yes", "--undo"]
    assert (await command(machine.env, *words))[0] == 1
    assert path.exists(), "its hooks are still there, and would use the first key"
    settings.write_text(written)
    assert "revoked" in (await machine.setup("--undo"))["key"]["text"]
    assert not path.exists()
    assert (await stack.get(f"/v1/admin/keys/{key_id}"))["revoked_at"]
    assert list(machine.project.iterdir()) == []


async def test_an_agent_of_all_projects_gets_one_key_for_them(machine: Machine) -> None:
    for words, agent in ((["--user"], "codex"), ([], "windsurf")):
        report = (await machine.setup(*words, agent=agent))["key"]
        assert Path(report["file"]).name == agent
        assert machine.key(agent, "any") == machine.key(agent, "")
    assert (await machine.setup(agent="aider"))["key"] is None


async def test_without_a_running_reverie_the_setup_says_how_to_get_a_key(
    machine: Machine, tmp_path: Path
) -> None:
    machine.env["REVERIE_HOME"] = str(tmp_path / "idle")
    report = (await machine.setup())["key"]
    assert report["file"] is None
    assert "reverie up" in report["text"]


async def test_a_configured_key_is_left_to_its_owner(machine: Machine, stack: Stack) -> None:
    machine.env |= {"REVERIE_GATEWAY_URL": stack.url, "REVERIE_API_KEY": stack.key}
    report = (await machine.setup())["key"]
    assert report["file"] is None
    assert "reverie key create" in report["text"]
    assert not (machine.home / "secrets/agents").exists()


async def test_setups_at_once_wait_for_each_other_and_create_one_key(
    machine: Machine, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[str] = []

    class NotedLock(filelock.FileLock):
        def acquire(self, *args: Any, **options: Any) -> Any:
            waiting.append(self.lock_file)
            return super().acquire(*args, **options)

    monkeypatch.setattr(filelock, "FileLock", NotedLock)
    # Set for all of them: each would restore the environment that it found while others run.
    for name, value in machine.env.items():
        monkeypatch.setenv(name, value)
    with (machine.home / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # What they print goes to one place, so only their exit codes are read.
        words = ("setup", "claude-code", "-C", str(machine.project), "--yes")
        setups = [asyncio.create_task(command({}, *words)) for _ in range(3)]
        await eventually(lambda: asyncio.sleep(0, len(waiting) == len(setups)))
        assert not any(setup.done() for setup in setups)
        assert not machine.key()
    assert [code for code, _, _ in await asyncio.gather(*setups)] == [0, 0, 0]
    keys = (await stack.get("/v1/admin/keys"))["items"]
    assert len([key for key in keys if key["label"] == "setup: claude-code, shop"]) == 1
