"""Turns of agents whose transcript cannot be read: from their events, kept while nobody answers.

A kept turn is redacted before it is written; there is room for a bounded number of them.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final

from reverie.agent.claude_code import text_of, told
from reverie.agent.hook_turns import as_sent, is_worth
from reverie.agent.transcripts import ParsedTurn
from reverie.domain.redaction import redact

MOST_BYTES: Final = 2_000_000


def turn_of(event: str, payload: dict[str, Any], external_id: str) -> dict[str, Any] | None:
    """The turn that an event tells of; None where it tells of none."""
    found = _parsed(event, payload, external_id)
    return as_sent(found) if found and is_worth(found) else None


def _parsed(event: str, payload: dict[str, Any], external_id: str) -> ParsedTurn | None:
    if event == "UserPromptSubmit":
        return ParsedTurn(external_id, "user", str(payload.get("prompt") or ""))
    if event in {"Stop", "SubagentStop"}:
        said = payload.get("last_assistant_message") or payload.get("prompt_response")
        return ParsedTurn(external_id, "assistant", str(said or ""))
    if event == "PostToolUse":
        asked = payload.get("tool_input")
        content = told(asked if isinstance(asked, dict) else {}, *_output(payload))
        tool = str(payload.get("tool_name") or "tool")
        return ParsedTurn(
            str(payload.get("tool_use_id") or external_id), "tool", content, tool=tool
        )
    return None


def _output(payload: dict[str, Any]) -> tuple[str, bool]:
    """What a tool gave back, and whether it failed."""
    given = payload.get("tool_response")
    if isinstance(payload.get("error"), str):
        return payload["error"], True
    if not isinstance(given, dict):
        return text_of(given), False
    said = [str(given[name]) for name in ("stdout", "stderr", "output", "llmContent", "error")
            if given.get(name)]  # fmt: skip
    failed = bool(given.get("is_error") or given.get("exit_code") or given.get("error"))
    return "\n".join(said) or text_of(given.get("content")), failed


def kept(path: str) -> list[dict[str, Any]]:
    """The turns that wait, without those of which the end was never written."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [turn for line in file if (turn := _turn(line)) is not None]
    except FileNotFoundError:
        return []


def _turn(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def keep(path: str, turn: dict[str, Any]) -> None:
    """Writes a turn down, redacted; where there is no more room, nothing."""
    safe = {**turn, "content": redact(turn["content"]).text}
    line = json.dumps(safe) + "\n"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(fd, "a", encoding="utf-8") as file:
        if file.tell() + len(line) <= MOST_BYTES:
            file.write(line)
