"""Codex skips hooks in silence until a person trusts them; `reverie doctor` says so."""

from __future__ import annotations

import json
from pathlib import Path

from reverie.agent.setup.agents import SetupTarget
from reverie.agent.setup.changes import apply_setup, plan_setup
from reverie.agent.setup.codex_trust import find_untrusted_hooks

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
