"""`reverie setup` edits agents' configuration files idempotently and reversibly."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from reverie.agent.setup import jsonc as jsonc
from reverie.agent.setup.agents import AGENTS, SetupTarget
from reverie.agent.setup.changes import (
    UndoPlan,
    apply_setup,
    apply_undo,
    plan_setup,
    plan_undo,
    prune_backups,
)
from reverie.agent.setup.codex_trust import find_untrusted_hooks
from reverie.cli.app.main import app
from reverie.domain.core.errors import MalformedInput

JSON = """\
{
    // what I use elsewhere
    "theme": "dark",
    "mcpServers": {"other": {"command": "other", "args": []}, /* keep */ },
    "mcp": {
        "other": {"type": "remote", "url": "https://example.com/a//b"}
    },
    "hooks": {
        "SessionStart": [
            {"hooks": [{"type": "command", "command": "echo hi"}]}
        ]
    }
}
"""
TOML = """\
# mine
model = "o4"   # the best

[mcp_servers.other]
command = "other"
"""
YAML = """\
# mine
GOOSE_PROVIDER: "anthropic"  # quoted
read: CONVENTIONS.md
extensions:
  developer:
    enabled: true
    args:
      - a
      - b
"""
NOTHING = UndoPlan([], [])
MARKDOWN = "# Rules\r\n\r\nUse tabs."


def foreign(path: Path) -> str:
    by_name = {".toml": TOML, ".yaml": YAML, ".yml": YAML, ".json": JSON, ".jsonc": JSON}
    return by_name.get(path.suffix, MARKDOWN)


def parse_file(path: Path) -> Any:
    text = path.read_text()
    if path.suffix == ".toml":
        return tomllib.loads(text)
    if path.suffix in {".yaml", ".yml"}:
        return yaml.safe_load(text)
    return jsonc.parse_jsonc(text) if path.suffix in {".json", ".jsonc"} else text


def contains_all(new: Any, old: Any) -> bool:
    """Whether all of the old is in the new, where it was."""
    if isinstance(old, dict):
        return all(name in new and contains_all(new[name], old[name]) for name in old)
    if isinstance(old, list):
        return all(one in new for one in old)
    return new == old or old in new


@pytest.mark.parametrize("user", [False, True], ids=["project", "user"])
@pytest.mark.parametrize("agent", AGENTS)
def test_each_agent_setup_keeps_existing_files_is_idempotent_and_can_be_undone(
    agent: str, user: bool, tmp_path: Path
) -> None:
    place = SetupTarget(tmp_path / "me", tmp_path / "shop", "shop", user)
    kept = tmp_path / "kept"
    files = list(AGENTS[agent](place))
    for path in files:
        if "reverie" not in path.name and "hooks" not in path.parent.name.lower():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(foreign(path).encode())
    before = {path: path.read_bytes() for path in files if path.exists()}
    old = {path: parse_file(path) for path in before}

    changes = plan_setup(agent, place)
    assert {change.path for change in changes} == set(files)
    assert all("+" in change.diff for change in changes)
    assert {path: path.read_bytes() for path in before} == before
    apply_setup(agent, place, changes, kept)

    assert plan_setup(agent, place) == []
    for path, value in old.items():
        assert contains_all(parse_file(path), value), path
        for line in before[path].decode().splitlines():
            comment = line.partition("//" if path.suffix == ".json" else "#")[2]
            assert comment in path.read_text()
    written = "".join(path.read_text() for path in files)
    assert ("mcp" in written) or agent == "aider"
    assert user or agent == "aider" or '"shop"' in written or "`shop`" in written
    assert all(note.stat().st_mode & 0o077 == 0 for note in kept.iterdir())

    apply_undo(agent, place, plan_undo(agent, place, kept).changes, kept)
    assert {path: path.read_bytes() for path in files if path.exists()} == before
    assert plan_undo(agent, place, kept) == NOTHING


def test_a_hook_script_of_somebody_else_is_left_alone_and_ours_can_be_started(
    tmp_path: Path,
) -> None:
    place = SetupTarget(tmp_path / "me", tmp_path / "shop", "shop", is_user_wide=False)
    theirs = tmp_path / "shop/.clinerules/hooks/PreToolUse"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("#!/bin/sh\nexit 0\n")
    apply_setup("cline", place, plan_setup("cline", place), tmp_path / "kept")
    assert theirs.read_text() == "#!/bin/sh\nexit 0\n"
    ours = theirs.with_name("TaskStart")
    assert os.access(ours, os.X_OK)
    assert ours.read_text().endswith("exec reverie hook TaskStart --agent cline --project shop\n")
    apply_undo("cline", place, plan_undo("cline", place, tmp_path / "kept").changes, tmp_path)
    assert [path.name for path in theirs.parent.iterdir()] == ["PreToolUse"]


@pytest.mark.parametrize("user", [False, True], ids=["project", "user"])
@pytest.mark.parametrize("agent", AGENTS)
def test_each_agent_can_be_set_up_in_an_empty_folder_and_undo_leaves_it_as_it_was(
    agent: str, user: bool, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    (tmp_path / "me").mkdir()
    (tmp_path / "shop/.claude").mkdir(parents=True)
    before = set(tmp_path.rglob("*"))
    place = SetupTarget(tmp_path / "me", tmp_path / "shop", "shop", user)
    apply_setup(agent, place, plan_setup(agent, place), kept)
    files = list(AGENTS[agent](place))
    assert all(parse_file(path) for path in files)
    for path in (one for one in files if one.suffix == ".json"):
        json.loads(path.read_text())
    assert plan_setup(agent, place) == []
    apply_undo(agent, place, plan_undo(agent, place, kept).changes, kept)
    assert set(tmp_path.rglob("*")) == before
    apply_setup(agent, place, plan_setup(agent, place), kept)
    files[0].write_text(files[0].read_text() + "\n")
    undo = plan_undo(agent, place, kept)
    assert undo.edited == files[:1]
    assert [change.path for change in undo.changes] == files[1:]


def test_a_fuller_setup_replaces_the_earlier_one_and_undo_restores_the_original(
    tmp_path: Path,
) -> None:
    kept = tmp_path / "kept"
    settings = tmp_path / "shop/.claude/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(JSON)
    for name in ("shop", "store"):
        place = SetupTarget(tmp_path / "me", tmp_path / "shop", name, is_user_wide=False)
        apply_setup("claude-code", place, plan_setup("claude-code", place), kept)
    hooks = jsonc.parse_jsonc(settings.read_text())["hooks"]
    assert [len(hooks[event]) for event in ("SessionStart", "Stop")] == [2, 1]
    assert "--project store" in str(hooks)
    assert "--project shop" not in str(hooks)
    assert hooks["PreToolUse"][0]["matcher"].startswith("Edit|")
    apply_undo("claude-code", place, plan_undo("claude-code", place, kept).changes, kept)
    assert settings.read_text() == JSON
    assert not (tmp_path / "shop/.mcp.json").exists()


@pytest.mark.parametrize("before", [None, MARKDOWN], ids=["no file", "a file"])
@pytest.mark.parametrize("first", ["codex", "opencode"])
def test_a_file_shared_by_two_agents_is_restored_when_the_last_one_is_undone(
    first: str, before: str | None, tmp_path: Path
) -> None:
    kept, rules = tmp_path / "kept", tmp_path / "shop/AGENTS.md"
    rules.parent.mkdir()
    if before is not None:
        rules.write_text(before, newline="")
    # The second one says more, so that what the first wrote is written anew.
    for agent, name in (("codex", "shop"), ("opencode", "shop"), ("opencode", "store")):
        place = SetupTarget(tmp_path / "me", tmp_path / "shop", name, is_user_wide=False)
        apply_setup(agent, place, plan_setup(agent, place), kept)
    second = {"codex": "opencode", "opencode": "codex"}[first]
    told = rules.read_bytes()
    assert b"Before you change a file" in told
    apply_undo(first, place, plan_undo(first, place, kept).changes, kept)
    assert rules.read_bytes() == told
    assert plan_undo(first, place, kept) == NOTHING
    apply_undo(second, place, plan_undo(second, place, kept).changes, kept)
    assert (rules.read_bytes().decode() if rules.exists() else None) == before
    assert not kept.exists()


def test_a_file_edited_by_hand_is_left_alone_by_repeated_setups(
    tmp_path: Path,
) -> None:
    kept, config = tmp_path / "kept", tmp_path / "shop/.codex/config.toml"
    place = SetupTarget(tmp_path / "me", tmp_path / "shop", "shop", is_user_wide=False)
    apply_setup("codex", place, plan_setup("codex", place), kept)
    notes = set(kept.iterdir())
    config.write_text(f"{config.read_text()}\n[profiles.mine]\n{TOML}")
    apply_setup("codex", place, plan_setup("codex", place), kept)
    assert set(kept.iterdir()) == notes
    assert plan_undo("codex", place, kept).edited == [config]


def test_undo_works_when_the_user_removed_part_of_the_setup(tmp_path: Path) -> None:
    kept, shop = tmp_path / "kept", tmp_path / "shop"
    place = SetupTarget(tmp_path / "me", shop, "shop", is_user_wide=False)
    (shop / ".codex").mkdir(parents=True)
    (shop / ".codex/config.toml").write_text(TOML)
    apply_setup("codex", place, plan_setup("codex", place), kept)
    (shop / ".codex/hooks.json").unlink()
    (shop / ".codex/config.toml").write_text(TOML)
    apply_undo("codex", place, plan_undo("codex", place, kept).changes, kept)
    assert [path.name for path in shop.rglob("*") if path.is_file()] == ["config.toml"]
    assert (shop / ".codex/config.toml").read_text() == TOML
    assert not kept.exists()


def test_a_setup_that_came_with_the_project_is_not_undone(tmp_path: Path) -> None:
    place = SetupTarget(tmp_path / "me", tmp_path / "shop", "shop", is_user_wide=False)
    apply_setup("codex", place, plan_setup("codex", place), tmp_path / "kept")
    apply_setup("codex", place, plan_setup("codex", place), tmp_path / "another's")
    assert plan_undo("codex", place, tmp_path / "another's") == NOTHING


def test_the_backup_of_a_file_is_removed_together_with_the_file(tmp_path: Path) -> None:
    kept, agent = tmp_path / "kept", "claude-code"
    shop, store = (
        SetupTarget(tmp_path, tmp_path / name, name, is_user_wide=False)
        for name in ("shop", "store")
    )
    for place in (shop, store):
        apply_setup(agent, place, plan_setup(agent, place), kept)
    both = set(kept.iterdir())
    shutil.rmtree(store.folder)
    prune_backups(kept)
    assert set(kept.iterdir()) == both
    for note in both:
        os.utime(note, (0, 0))
    prune_backups(kept)
    ours = set(kept.iterdir())
    assert 0 < len(ours) < len(both)
    for path in AGENTS[agent](shop):
        path.unlink()
    prune_backups(kept)
    assert not kept.exists()


@pytest.mark.parametrize("text", ["{", "[1,,2]", '{"a": 1 "b": 2}', "{'a': 1}", "nonsense"])
def test_invalid_json_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(MalformedInput, match=r"line 1|no object"):
        jsonc.set_value(text, ["a", "b"], 1)


def test_the_setup_command_shows_its_changes_asks_and_can_undo_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    shop = tmp_path / "shop"
    shop.mkdir()
    words = ["setup", "claude-code", "-C", str(shop), "--home", str(tmp_path / "home")]
    run = CliRunner().invoke
    refused = run(app, words, input="n\n")
    assert refused.exit_code == 1
    assert "+" in refused.output
    assert list(shop.iterdir()) == []
    assert run(app, words, input="y\n").exit_code == 0
    server = json.loads((shop / ".mcp.json").read_text())["mcpServers"]["reverie"]
    assert server["args"] == ["mcp", "--agent", "claude-code", "--project", "shop"]
    assert "already" in run(app, words).output
    assert run(app, [*words, "--undo", "--yes"]).exit_code == 0
    assert list(shop.iterdir()) == []
    assert "aider" in run(app, ["setup"]).output
    wrong = run(app, ["setup", "emacs"])
    assert "claude-code" in str(wrong.exception)


def test_a_missing_project_folder_is_not_created(tmp_path: Path) -> None:
    words = ["setup", "codex", "-C", str(tmp_path / "typo"), "--yes"]
    done = CliRunner().invoke(app, words, env={"REVERIE_HOME": str(tmp_path / "home")})
    assert "typo is not a folder" in str(done.exception)
    assert not (tmp_path / "typo").exists()


EVENTS = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "user_prompt_submit",
    "PreCompact": "pre_compact",
    "Stop": "stop",
    "SessionEnd": "session_end",
    "PreToolUse": "pre_tool_use",
    "PostToolUse": "post_tool_use",
}


def _trust(home: Path, hooks: Path, events: list[str]) -> None:
    config = home / ".codex/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    lines = [f'[hooks.state."{hooks}:{event}:0:0"]\ntrusted_hash = "sha256:1"' for event in events]
    config.write_text("\n".join(lines))


def test_hooks_of_codex_are_named_until_each_is_trusted(tmp_path: Path) -> None:
    home, shop = tmp_path / "me", tmp_path / "shop"
    assert find_untrusted_hooks(home, shop, {}) == []
    place = SetupTarget(home, shop, "shop", is_user_wide=False)
    apply_setup("codex", place, plan_setup("codex", place), tmp_path / "kept")
    assert set(find_untrusted_hooks(home, shop, {})) == set(EVENTS)
    hooks = shop / ".codex/hooks.json"
    _trust(home, hooks, [name for event, name in EVENTS.items() if event != "Stop"])
    assert find_untrusted_hooks(home, shop, {}) == ["Stop"]
    _trust(home, hooks, [*EVENTS.values()])
    assert find_untrusted_hooks(home, shop, {}) == []
    assert find_untrusted_hooks(home, shop, {"CODEX_HOME": str(tmp_path)}) != []


def test_hooks_of_others_and_damaged_files_name_nothing(tmp_path: Path) -> None:
    hooks = tmp_path / ".codex/hooks.json"
    hooks.parent.mkdir()
    for text in (
        "{",
        "[]",
        '{"hooks": {"Stop": [{"hooks": [7]}]}}',
        json.dumps({"hooks": {"Stop": [{"hooks": [{"command": "other hook"}]}]}}),
    ):
        hooks.write_text(text)
        (tmp_path / ".codex/config.toml").write_text("[[")
        assert find_untrusted_hooks(tmp_path, tmp_path / "shop", {}) == []
