"""The agents that are driven: how each is installed, pointed at a model, called and answered."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from reverie.testing.chat_server import ToolUse

MODEL = "scripted"


@dataclass(frozen=True)
class AgentProgram:
    """An agent as a program.

    `package`: its npm package, with the version. `words`: its command line before the prompt.
    `write_config`: points the agent of a home folder at the model's address; the folders are its
    projects. `read`, `edit`: the calls by which its model reads a file, and replaces a line.
    `plugin`: the commands that install Reverie's plugin from its folder; `{home}` is the person's
    home, `{root}` the top of Reverie.
    """

    name: str
    package: str
    words: tuple[str, ...]
    write_config: Callable[[Path, str, list[Path]], None]
    read: Callable[[Path], ToolUse]
    edit: Callable[[Path, str, str], ToolUse]
    environ: dict[str, str] = field(default_factory=dict)
    plugin: tuple[str, ...] = ()


def _write_nothing(home: Path, url: str, folders: list[Path]) -> None:
    """Claude Code takes all from its environment."""


def _write_codex(home: Path, url: str, folders: list[Path]) -> None:
    lines = [f'model = "{MODEL}"', 'model_provider = "scripted"', "[model_providers.scripted]"]
    lines += ['name = "scripted"', f'base_url = "{url}/v1"', 'wire_api = "responses"']
    lines += [f'[projects."{folder}"]\ntrust_level = "trusted"' for folder in folders]
    _write(home / ".codex/config.toml", "\n".join(lines) + "\n")


def _write_opencode(home: Path, url: str, folders: list[Path]) -> None:
    model = {"name": MODEL, "tool_call": True, "limit": {"context": 100_000, "output": 4_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {MODEL: model},
    }
    config = {
        "model": f"scripted/{MODEL}",
        "small_model": f"scripted/{MODEL}",
        "provider": {"scripted": provider},
        "permission": {"edit": "allow", "bash": "allow"},
        "autoupdate": False,
    }
    _write(home / ".config/opencode/opencode.json", json.dumps(config))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _claude_read(file: Path) -> ToolUse:
    return ToolUse("Read", {"file_path": str(file)})


def _claude_edit(file: Path, old: str, new: str) -> ToolUse:
    return ToolUse("Edit", {"file_path": str(file), "old_string": old, "new_string": new})


def _codex_read(file: Path) -> ToolUse:
    return ToolUse("exec_command", {"cmd": f"cat {file}"})


def _codex_edit(file: Path, old: str, new: str) -> ToolUse:
    lines = ["*** Begin Patch", f"*** Update File: {file}", "@@", f"-{old}", f"+{new}"]
    patch = "\n".join([*lines, "*** End Patch"])
    return ToolUse("exec_command", {"cmd": f"apply_patch <<'EOF'\n{patch}\nEOF"})


def _opencode_read(file: Path) -> ToolUse:
    return ToolUse("read", {"filePath": str(file)})


def _opencode_edit(file: Path, old: str, new: str) -> ToolUse:
    return ToolUse("edit", {"filePath": str(file), "oldString": old, "newString": new})


PROGRAMS = (
    AgentProgram(
        "claude-code",
        "@anthropic-ai/claude-code@2.1.197",
        ("claude", "--dangerously-skip-permissions", "-p"),
        _write_nothing,
        _claude_read,
        _claude_edit,
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # It refuses to skip permissions for root unless it is told that this is a sandbox.
            "IS_SANDBOX": "1",
        },
        (
            "claude plugin marketplace add {root}",
            "claude plugin install reverie@reverie",
        ),
    ),
    AgentProgram(
        "codex",
        "@openai/codex@0.171.0",
        (
            "codex",
            "exec",
            # The trust of hooks is given by hand, at the terminal: see docs/agents/setup.md.
            "--dangerously-bypass-hook-trust",
            "--dangerously-bypass-approvals-and-sandbox",
        ),
        _write_codex,
        _codex_read,
        _codex_edit,
    ),
    AgentProgram(
        "opencode",
        "opencode-ai@1.18.33",
        ("opencode", "run"),
        _write_opencode,
        _opencode_read,
        _opencode_edit,
        {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"},
        (
            "npm pack {root}/plugins/opencode --pack-destination {home}",
            "opencode plugin --global file:{home}/opencode-reverie-0.1.0.tgz",
        ),
    ),
)
