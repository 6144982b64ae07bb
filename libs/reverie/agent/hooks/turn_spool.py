"""Builds turns from hook events, and spools them redacted while no gateway responds."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any, Final

from reverie.agent.transcripts.claude_code import extract_text, format_tool_call
from reverie.agent.transcripts.turn_filter import encode_turn, is_worth_sending
from reverie.agent.transcripts.turns import ParsedTurn, dict_or_empty
from reverie.domain.redaction.redactor import redact

MAX_SPOOL_BYTES: Final = 2_000_000


def build_turn(event: str, payload: dict[str, Any], external_id: str) -> dict[str, Any] | None:
    """Builds the turn of an event; None if the event contains no turn."""
    turn = _parse_event(event, payload, external_id)
    return encode_turn(turn) if turn and is_worth_sending(turn) else None


def _parse_event(event: str, payload: dict[str, Any], external_id: str) -> ParsedTurn | None:
    if event == "UserPromptSubmit":
        return ParsedTurn(external_id, "user", str(payload.get("prompt") or ""))
    if event in {"Stop", "SubagentStop"}:
        message = payload.get("last_assistant_message") or payload.get("prompt_response")
        return ParsedTurn(external_id, "assistant", str(message or ""))
    if event == "PostToolUse":
        arguments = dict_or_empty(payload.get("tool_input"))
        content = format_tool_call(arguments, *_tool_output(payload))
        tool = str(payload.get("tool_name") or "tool")
        return ParsedTurn(
            str(payload.get("tool_use_id") or external_id), "tool", content, tool=tool
        )
    return None


def _tool_output(payload: dict[str, Any]) -> tuple[str, bool]:
    """Returns the output of a tool, and whether the tool failed."""
    response = payload.get("tool_response")
    if isinstance(response, str) and response.startswith("{"):
        with suppress(ValueError):
            response = json.loads(response)
    if isinstance(payload.get("error"), str):
        return payload["error"], True
    if not isinstance(response, dict):
        return extract_text(response), False
    texts = [str(response[name]) for name in ("stdout", "stderr", "output", "llmContent", "error")
            if response.get(name)]  # fmt: skip
    failed = any(response.get(name) for name in ("is_error", "exit_code", "exitCode", "error"))
    return "\n".join(texts) or extract_text(response.get("content")), failed


def read_spooled_turns(path: str) -> list[dict[str, Any]]:
    """The turns that wait, without those of which the end was never written."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [turn for line in file if (turn := _decode_turn(line)) is not None]
    except FileNotFoundError:
        return []


def _decode_turn(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def spool_turn(path: str, turn: dict[str, Any]) -> None:
    """Writes a redacted turn to the spool; writes nothing if the spool is full."""
    redacted = {**turn, "content": redact(turn["content"]).text}
    line = json.dumps(redacted) + "\n"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(fd, "a", encoding="utf-8") as file:
        if file.tell() + len(line) <= MAX_SPOOL_BYTES:
            file.write(line)
