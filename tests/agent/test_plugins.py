"""The plugins that agents install by their own commands, and the module that setup writes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from reverie.agent.setup.agents import SetupTarget, plan_files
from reverie.agent.setup.changes import apply_setup, plan_setup
from reverie.mcp.tools import TOOLS
from tests.agent.agent_payloads import FOLDER

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "plugins"


def test_the_plugin_of_claude_code_has_the_hooks_and_the_server_of_setup() -> None:
    home = Path("/me")
    files = plan_files("claude-code", SetupTarget(home, home / "x", None, is_user_wide=True))
    written = {}
    for path, edits in files.items():
        text = ""
        for edit in edits:
            text = edit(text)
        written[path.name] = json.loads(text)
    folder = PLUGINS / "claude-code"
    assert json.loads((folder / "hooks/hooks.json").read_text()) == written["settings.json"]
    own = json.loads((folder / ".mcp.json").read_text())["mcpServers"]["reverie"]
    assert {"type": "stdio", **own} == written[".claude.json"]["mcpServers"]["reverie"]


def test_the_marketplace_lists_the_plugin_and_its_commands_name_tools_that_exist() -> None:
    market = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())
    [listed] = market["plugins"]
    manifest = ROOT / listed["source"] / ".claude-plugin/plugin.json"
    assert json.loads(manifest.read_text())["name"] == listed["name"]
    commands = [*(ROOT / listed["source"] / "commands").glob("*.md")]
    assert {path.stem for path in commands} == {"remember", "why", "recall"}
    for path in commands:
        named = set(re.findall(r"`([a-z_]+)`", path.read_text())) - {"reverie", "files"}
        assert named, path
        assert named <= {tool.name for tool in TOOLS}, path


_DRIVER = """
import { ReveriePlugin } from "./plugin.mjs"
const hooks = await ReveriePlugin({ directory: "/nowhere/shop" })
const output = { parts: [{ id: "prt_1", type: "text", text: "Why cents?" }] }
await hooks["chat.message"]({ sessionID: "ses_1" }, output)
const call = { tool: "bash", sessionID: "ses_1", callID: "call_1", args: { command: "ls" } }
await hooks["tool.execute.after"](call, { output: "x", metadata: { exit: 1 } })
const file = { tool: "read", sessionID: "ses_1", callID: "call_2", args: { filePath: "a.py" } }
const read = { output: "def a(): ..." }
await hooks["tool.execute.after"](file, read)
const part = { id: "prt_3", sessionID: "ses_1", type: "text", text: "Floats.", time: { end: 1 } }
await hooks.event({ event: { type: "message.part.updated", properties: { part } } })
await hooks.event({ event: { type: "session.compacted", properties: { sessionID: "ses_1" } } })
await hooks.dispose()
console.log(JSON.stringify([output.parts, read.output]))
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("source", ["setup", "package"])
def test_the_plugin_of_opencode_calls_the_hooks_and_adds_their_answer(
    source: str, tmp_path: Path
) -> None:
    shop = tmp_path / "shop"
    place = SetupTarget(tmp_path / "me", shop, "shop", is_user_wide=False)
    if source == "setup":
        apply_setup("opencode", place, plan_setup("opencode", place), tmp_path / "kept")
        shutil.copy(shop / ".opencode/plugins/reverie.js", tmp_path / "plugin.mjs")
    else:
        built = tmp_path / "plugin.mjs"
        subprocess.run(["node", str(PLUGINS / "opencode/build.mjs"), str(built)], check=True)
    answer = {"hookSpecificOutput": {"additionalContext": "MEMORY"}}
    fake = tmp_path / "reverie"
    fake.write_text(
        f'#!/bin/sh\nread -r line\necho "$* $line" >> {tmp_path}/calls\n'
        f"case $2 in UserPromptSubmit|PreToolUse) echo '{json.dumps(answer)}';; esac\n"
    )
    fake.chmod(0o755)
    (tmp_path / "driver.mjs").write_text(_DRIVER)
    done = subprocess.run(
        ["node", "driver.mjs"],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    parts, read = json.loads(done.stdout)
    assert read == "def a(): ...\n\nMEMORY"
    assert [part["text"] for part in parts] == ["Why cents?", "MEMORY"]
    assert parts[1]["synthetic"]
    calls = [line.partition(" {") for line in (tmp_path / "calls").read_text().splitlines()]
    # A package is for all projects.
    project = " --project shop" if source == "setup" else ""
    assert {words for words, _, _ in calls} == {
        f"hook {event} --agent opencode{project}"
        for event in (
            *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"),
            *("Stop", "PreCompact", "SessionEnd"),
        )
    }
    payloads = [json.loads("{" + body) for _, _, body in calls]
    assert {payload["session_id"] for payload in payloads} == {"ses_1"}
    assert {payload["cwd"] for payload in payloads} == {FOLDER}
