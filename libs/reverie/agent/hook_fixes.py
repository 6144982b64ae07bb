"""Commands that failed, and what was edited until they went through: a bug and its fix."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from typing import Any, Final

from reverie.agent.hook_turns import is_noise
from reverie.agent.transcripts import ParsedTurn
from reverie.domain.redaction import redact

MOST_OPEN: Final = 20
MOST_FILES: Final = 8
_WRITERS: Final = {"Edit", "Write", "MultiEdit", "NotebookEdit"}
_FAILED: Final = re.compile(r"^(?:Error: )?Exit code:? [1-9]\d*\s*", re.M)
_WHY: Final = re.compile(
    r"^.*(?:\w(?:Error|Exception)\b|\berror\b|\bFAILED\b|--- FAIL|panic:|not found).*$", re.M
)

Open = dict[str, dict[str, Any]]
"""Failed commands by a hash of theirs: why, and the files that were edited since."""


def fixes(turns: Iterable[ParsedTurn], failed: Open, root: str) -> list[dict[str, Any]]:
    """What `POST /v1/remember` takes for each command that went through after edits; `failed` is
    brought up to date and holds no credential."""
    found = []
    for turn in turns:
        if turn.role != "tool":
            continue
        asked, output = _parts(turn)
        path = asked.get("file_path") or asked.get("notebook_path")
        if turn.tool in _WRITERS and path:
            _note_edit(failed, _relative(str(path), root))
        elif command := str(asked.get("command") or ""):
            found += _ran(turn, command, output, failed)
    return found


def _ran(turn: ParsedTurn, command: str, output: str, failed: Open) -> list[dict[str, Any]]:
    name = hashlib.sha256(" ".join(command.split()).encode()).hexdigest()[:16]
    if _FAILED.match(output):
        failed[name] = {"why": redact(_why(output)).text, "files": []}
        for old in list(failed)[:-MOST_OPEN]:
            del failed[old]
        return []
    before = failed.pop(name, None)
    if before is None or not before["files"] or is_noise(turn.tool or "", command, ""):
        return []
    return [_told(turn, " ".join(command.split()), before)]


def _told(turn: ParsedTurn, command: str, before: dict[str, Any]) -> dict[str, Any]:
    files = before["files"]
    text = f"`{command[:200]}` failed: {before['why']} It passes since {', '.join(files)} changed."
    return {
        "external_id": turn.external_id,
        "content": text,
        "kind": "bug",
        "tags": ["fixed"],
        "confidence": 0.5,
        "git": {"files": files},
    }


def _note_edit(failed: Open, path: str) -> None:
    for one in failed.values():
        if path not in one["files"] and len(one["files"]) < MOST_FILES:
            one["files"].append(path)


def _why(output: str) -> str:
    """The line that says why, else the last one."""
    rest = _FAILED.sub("", output, count=1)
    lines = _WHY.findall(rest) or [line for line in rest.splitlines() if line.strip()] or ["?"]
    line = " ".join(str(lines[-1]).removeprefix("E  ").split())[:300]
    return line if line.endswith((".", "!", "?")) else f"{line}."


def _relative(path: str, root: str) -> str:
    inside = os.path.relpath(path, root) if os.path.isabs(path) else path
    return path if inside.startswith("..") else inside


def _parts(turn: ParsedTurn) -> tuple[dict[str, Any], str]:
    head, _, output = turn.content.partition("\n```\n")
    try:
        asked = json.loads(head)
    except ValueError:
        asked = {}
    return asked if isinstance(asked, dict) else {}, output.removesuffix("\n```")
