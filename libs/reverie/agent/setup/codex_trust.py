"""Finds the hooks that Codex skips, because nobody has trusted them yet.

Codex runs a hook only after a person has trusted it, at its terminal. It keeps that in its own
`config.toml`, under `hooks.state`, by the hook's file, event and place. An untrusted hook is
skipped in silence. Reverie only reads this: a program that trusts itself would undo the question.
The hash that is trusted is not compared: Codex asks again itself about a hook that was changed.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HOW_TO_TRUST = "start `codex` in the project once, trust the folder, and choose to trust all hooks"


def find_untrusted_hooks(home: Path, folder: Path, environ: Mapping[str, str]) -> list[str]:
    """The events whose hook of Reverie Codex does not run, for the person and for the project.

    `home`: the person's home. `folder`: the top of the project. Files that cannot be read count as
    empty.
    """
    codex_home = Path(environ.get("CODEX_HOME") or home / ".codex")
    state = _read_state(codex_home / "config.toml")
    files = dict.fromkeys([codex_home / "hooks.json", folder / ".codex/hooks.json"])
    return [
        event
        for file in files
        for event, place in _own_hooks(file)
        if not state.get(f"{file}:{_snake_case(event)}:{place}", {}).get("trusted_hash")
    ]


def _read_state(config: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        state = tomllib.loads(config.read_text()).get("hooks", {}).get("state", {})
    except (OSError, ValueError, AttributeError):
        return {}
    return {key: value for key, value in state.items() if isinstance(value, dict)}


def _own_hooks(file: Path) -> Iterator[tuple[str, str]]:
    """The event and the place (`group:index`) of each hook that calls Reverie."""
    try:
        hooks = json.loads(file.read_text())["hooks"]
        for event, groups in hooks.items():
            for number, group in enumerate(groups):
                for index, hook in enumerate(group["hooks"]):
                    if "reverie hook" in hook.get("command", ""):
                        yield event, f"{number}:{index}"
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return


def _snake_case(event: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")
