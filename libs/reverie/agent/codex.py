"""Codex CLI's rollouts (`~/.codex/sessions/**/rollout-*.jsonl`) into turns, line by line.

A line is `{timestamp, type, payload}`; those written before that envelope hold the payload alone.
What was said and done stands in the response items; events repeat it and are left out, as are
thoughts and what the program itself put in (instructions, the environment). A message's external
id is the number of its line, for the file only grows; a tool call's is the call's own id, and it
becomes a turn when its output is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from reverie.agent.claude_code import time_of, told
from reverie.agent.transcripts import ParsedTurn, keep_last, word

_NOBODY: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<collaboration_mode>",
    "<skills_instructions>",
    "# AGENTS.md instructions",
)
_CALLS: Final = {"function_call", "custom_tool_call", "local_shell_call"}
_OUTPUTS: Final = {"function_call_output", "custom_tool_call_output"}
_TYPES: Final = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}


def is_codex(entry: dict[str, Any]) -> bool:
    """Whether a decoded line is one of a rollout."""
    if isinstance(entry.get("payload"), dict):
        return word(entry.get("type")) in _TYPES
    return "instructions" in entry and "id" in entry and "timestamp" in entry


class Reader:
    """Takes decoded lines in file order. `meta`: what the file says of its session."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.calls: dict[str, dict[str, Any]] = {}

    def entry(self, entry: object, number: int) -> Iterator[ParsedTurn]:
        """The turns that a line completes; `number` is the line's."""
        if not isinstance(entry, dict):
            return
        inner = entry.get("payload")
        item = inner if isinstance(inner, dict) else entry
        kind = word(entry.get("type")) if item is inner else None
        if kind == "session_meta" or (item is entry and is_codex(entry)):
            self.meta = self.meta or item
        elif kind in {"response_item", None}:
            yield from self._item(item, time_of(entry.get("timestamp")), number)

    def _item(self, item: dict[str, Any], at: datetime | None, number: int) -> Iterator[ParsedTurn]:
        kind, call = word(item.get("type")), item.get("call_id") or item.get("id")
        if kind == "message" and word(item.get("role")) in {"user", "assistant"}:
            said = _text(item.get("content"))
            if said and not said.startswith(_NOBODY):
                yield ParsedTurn(f"line-{number:06d}", item["role"], said, at)
        elif kind in _CALLS and isinstance(call, str):
            self.calls[call] = item
            keep_last(self.calls)
        elif kind in _OUTPUTS and (asked := self.calls.pop(str(call), None)) is not None:
            output, failed = _output(item.get("output"))
            name = str(asked.get("name") or "shell")
            yield ParsedTurn(str(call), "tool", told(_asked(asked), output, failed), at, name)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content.strip()
    blocks = content if isinstance(content, list) else []
    texts = (one.get("text") for one in blocks if isinstance(one, dict))
    return "\n\n".join(one for one in texts if isinstance(one, str)).strip()


def _asked(call: dict[str, Any]) -> dict[str, Any]:
    """What a call was given, under the names that a turn shows."""
    given = _decoded(call.get("arguments") or call.get("action") or {})
    if not isinstance(given, dict):
        return {"command": str(call.get("input") or given)}
    command = given.get("command") or given.get("cmd") or call.get("input")
    if isinstance(command, list):
        words = [str(one) for one in command]
        shell = len(words) == 3 and words[1] in {"-c", "-lc"}
        command = words[2] if shell else " ".join(words)
    return {**given, "command": command} if command else given


def _output(output: object) -> tuple[str, bool]:
    """The text of an output, and whether it tells of a failure."""
    found = _decoded(output)
    if isinstance(found, dict):
        facts = found.get("metadata")
        code = facts.get("exit_code") if isinstance(facts, dict) else None
        text = found.get("output") or found.get("content") or ""
        return text if isinstance(text, str) else _text(text), bool(code) or (
            found.get("success") is False
        )
    return output if isinstance(output, str) else _text(found), False


def _decoded(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
