"""Detects commands that failed and passed after edits, and reports them as bug memories."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from typing import Any, Final

from reverie.agent.transcripts.turn_filter import is_noise
from reverie.agent.transcripts.turns import ParsedTurn
from reverie.domain.redaction.redactor import redact

MAX_OPEN_FAILURES: Final = 20
MAX_FILES: Final = 8
_EDIT_TOOLS: Final = {"Edit", "Write", "MultiEdit", "NotebookEdit"}
_FAILURE: Final = re.compile(r"^(?:Error: )?Exit code:? [1-9]\d*\s*", re.M)
_ERROR_LINE: Final = re.compile(
    r"^.*(?:\w(?:Error|Exception)\b|\berror\b|\bFAILED\b|--- FAIL|panic:|not found).*$", re.M
)

OpenFailures = dict[str, dict[str, Any]]
"""Failed commands by a hash of theirs: why, and the files that were edited since."""


def find_fixes(
    turns: Iterable[ParsedTurn], open_failures: OpenFailures, root: str
) -> list[dict[str, Any]]:
    """Builds a `POST /v1/remember` body for each failed command that succeeded after edits.

    Updates `open_failures`, which contains no credential.
    """
    memories = []
    for turn in turns:
        if turn.role != "tool":
            continue
        arguments, output = _split_tool_call(turn)
        path = str(arguments.get("file_path") or arguments.get("notebook_path") or "")
        if turn.tool in _EDIT_TOOLS and path:
            relative = os.path.relpath(path, root) if os.path.isabs(path) else path
            _record_edit(open_failures, path if relative.startswith("..") else relative)
        elif command := str(arguments.get("command") or ""):
            memories += _record_command(turn, command, output, open_failures)
    return memories


def _record_command(
    turn: ParsedTurn, command: str, output: str, open_failures: OpenFailures
) -> list[dict[str, Any]]:
    command_hash = hashlib.sha256(" ".join(command.split()).encode()).hexdigest()[:16]
    if _FAILURE.match(output):
        open_failures[command_hash] = {"reason": redact(_find_error_line(output)).text, "files": []}
        for oldest in list(open_failures)[:-MAX_OPEN_FAILURES]:
            del open_failures[oldest]
        return []
    failure = open_failures.pop(command_hash, None)
    if failure is None or not failure["files"] or is_noise(turn.tool or "", command, ""):
        return []
    files, shown = failure["files"], " ".join(command.split())[:200]
    text = f"`{shown}` failed: {failure['reason']} It passes since {', '.join(files)} changed."
    memory = {
        "external_id": turn.external_id,
        "content": text,
        "kind": "bug",
        "tags": ["fixed"],
        "confidence": 0.5,
        "git": {"files": files},
    }
    return [memory]


def _record_edit(open_failures: OpenFailures, path: str) -> None:
    for failure in open_failures.values():
        if path not in failure["files"] and len(failure["files"]) < MAX_FILES:
            failure["files"].append(path)


def _find_error_line(output: str) -> str:
    """Returns the line that gives the reason, else the last line."""
    remaining = _FAILURE.sub("", output, count=1)
    lines = (
        _ERROR_LINE.findall(remaining)
        or [line for line in remaining.splitlines() if line.strip()]
        or ["?"]
    )
    line = " ".join(str(lines[-1]).removeprefix("E  ").split())[:300]
    return line if line.endswith((".", "!", "?")) else f"{line}."


def _split_tool_call(turn: ParsedTurn) -> tuple[dict[str, Any], str]:
    head, _, output = turn.content.partition("\n```\n")
    try:
        arguments = json.loads(head)
    except ValueError:
        arguments = {}
    return arguments if isinstance(arguments, dict) else {}, output.removesuffix("\n```")
