"""Files by which agents call `reverie hook`, in each agent's form."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from reverie.agent.setup.config_edits import TextEdit, add_json_hooks, set_content, set_json_value

HOOK_TIMEOUT_SECONDS: Final = 10
_SCRIPT_MARK: Final = "# Written by `reverie setup`."
_PLUGIN: Final = Path(__file__).with_name("plugin.js")


class HookTarget(Protocol):
    """Builds the command of a hook."""

    def hook_command(self, event: str, agent: str | None = None) -> list[str]:
        """The words of the command line."""


def grouped_hooks(
    target: HookTarget,
    events: Iterable[str],
    tools: Mapping[str, str],
    agent: str | None = None,
    timeout: int = HOOK_TIMEOUT_SECONDS,
) -> TextEdit:
    """Hooks in Claude Code's shape; `tools` has the matcher of the events that have one."""
    groups: dict[str, dict[str, Any]] = {
        event: {
            **({"matcher": tools[event]} if event in tools else {}),
            "hooks": [
                {
                    "type": "command",
                    "command": shlex.join(target.hook_command(event, agent)),
                    "timeout": timeout,
                },
            ],
        }
        for event in [*events, *tools]
    }
    return add_json_hooks(groups)


def flat_hooks(target: HookTarget, events: Iterable[str], agent: str, **fields: object) -> TextEdit:
    """Hooks as Cursor and Windsurf write them: a list of commands for each event."""
    return add_json_hooks(
        {
            event: {"command": shlex.join(target.hook_command(event, agent)), **fields}
            for event in events
        }
    )


def hook_scripts(
    target: HookTarget, folder: Path, events: Iterable[str], agent: str
) -> dict[Path, list[TextEdit]]:
    """A program for each event, named like it; one that somebody else wrote is left alone."""
    files: dict[Path, list[TextEdit]] = {}
    for event in events:
        path = folder / event
        if not path.exists() or _SCRIPT_MARK in path.read_text(errors="replace"):
            command = shlex.join(target.hook_command(event, agent))
            files[path] = [set_content(f"#!/bin/sh\n{_SCRIPT_MARK}\nexec {command}\n")]
    return files


def goose_plugin(
    target: HookTarget, folder: Path, events: Iterable[str]
) -> dict[Path, list[TextEdit]]:
    """A plugin with hooks only, in the Open Plugins format that Goose reads."""
    manifest = {"name": "reverie", "version": "0.1.0", "description": "Long-term memory"}
    return {
        folder / "plugin.json": [set_json_value([name], text) for name, text in manifest.items()],
        folder / "hooks/hooks.json": [grouped_hooks(target, events, {}, "goose")],
    }


def plugin_module(target: HookTarget, agent: str) -> TextEdit:
    """A module for agents that load JavaScript: OpenCode and Kilo."""
    before, _, after = shlex.join(target.hook_command("EVENT", agent)).partition(" EVENT")
    words = {"__COMMAND__": shlex.split(before), "__OPTIONS__": shlex.split(after)}
    text = _PLUGIN.read_text()
    for mark, value in words.items():
        text = text.replace(mark, json.dumps(value))
    return set_content(text)
