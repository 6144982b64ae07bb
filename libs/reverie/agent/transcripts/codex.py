"""Parses Codex CLI rollouts (`~/.codex/sessions/**/rollout-*.jsonl`) into turns.

A line is `{timestamp, type, payload}`; older files hold the payload alone. Only response items are
read. A message's external id is its line number, that of a tool call is the call's id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from reverie.agent.transcripts.claude_code import format_tool_call, parse_timestamp
from reverie.agent.transcripts.turns import (
    ParsedTurn,
    dict_or_empty,
    drop_oldest_calls,
    text_or_empty,
)

_INJECTED_PREFIXES: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<collaboration_mode>",
    "<skills_instructions>",
    "# AGENTS.md instructions",
)
_CALL_TYPES: Final = {"function_call", "custom_tool_call", "local_shell_call"}
_OUTPUT_TYPES: Final = {"function_call_output", "custom_tool_call_output"}
_ENTRY_TYPES: Final = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}


def is_codex_entry(entry: dict[str, Any]) -> bool:
    """Returns whether a decoded line belongs to a rollout."""
    if isinstance(entry.get("payload"), dict):
        return text_or_empty(entry.get("type")) in _ENTRY_TYPES
    return "instructions" in entry and "id" in entry and "timestamp" in entry


class CodexParser:
    """A parser that reads decoded lines in file order. `meta`: the session's facts in the file."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.pending_calls: dict[str, dict[str, Any]] = {}

    def parse_entry(self, entry: object, line_number: int) -> Iterator[ParsedTurn]:
        """The turns that a line completes; `line_number` is the line's."""
        if not isinstance(entry, dict):
            return
        payload = entry.get("payload")
        item = payload if isinstance(payload, dict) else entry
        kind = text_or_empty(entry.get("type")) if item is payload else None
        if kind == "session_meta" or (item is entry and is_codex_entry(entry)):
            self.meta = self.meta or item
        elif kind in {"response_item", None}:
            yield from self._parse_item(item, parse_timestamp(entry.get("timestamp")), line_number)

    def _parse_item(
        self, item: dict[str, Any], at: datetime | None, line_number: int
    ) -> Iterator[ParsedTurn]:
        kind, call_id = text_or_empty(item.get("type")), item.get("call_id") or item.get("id")
        if kind == "message" and text_or_empty(item.get("role")) in {"user", "assistant"}:
            text = _message_text(item.get("content"))
            if text and not text.startswith(_INJECTED_PREFIXES):
                yield ParsedTurn(f"line-{line_number:06d}", item["role"], text, at)
        elif kind in _CALL_TYPES and isinstance(call_id, str):
            self.pending_calls[call_id] = item
            drop_oldest_calls(self.pending_calls)
        elif (
            kind in _OUTPUT_TYPES
            and (pending_call := self.pending_calls.pop(str(call_id), None)) is not None
        ):
            output, failed = _parse_output(item.get("output"))
            name = str(pending_call.get("name") or "shell")
            yield ParsedTurn(
                str(call_id),
                "tool",
                format_tool_call(_call_arguments(pending_call), output, failed),
                at,
                name,
            )


def _message_text(content: object) -> str:
    if isinstance(content, str):
        return content.strip()
    blocks = content if isinstance(content, list) else []
    texts = (item.get("text") for item in blocks if isinstance(item, dict))
    return "\n\n".join(item for item in texts if isinstance(item, str)).strip()


def _call_arguments(call: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a call, under the names that a turn shows."""
    arguments = _decode_json(call.get("arguments") or call.get("action") or {})
    if not isinstance(arguments, dict):
        return {"command": str(call.get("input") or arguments)}
    command = arguments.get("command") or arguments.get("cmd") or call.get("input")
    if isinstance(command, list):
        words = [str(part) for part in command]
        is_shell = len(words) == 3 and words[1] in {"-c", "-lc"}
        command = words[2] if is_shell else " ".join(words)
    return {**arguments, "command": command} if command else arguments


def _parse_output(output: object) -> tuple[str, bool]:
    """Returns the text of an output, and whether it reports a failure."""
    decoded = _decode_json(output)
    if isinstance(decoded, dict):
        exit_code = dict_or_empty(decoded.get("metadata")).get("exit_code")
        text = decoded.get("output") or decoded.get("content") or ""
        return text if isinstance(text, str) else _message_text(text), bool(exit_code) or (
            decoded.get("success") is False
        )
    return output if isinstance(output, str) else _message_text(decoded), False


def _decode_json(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
