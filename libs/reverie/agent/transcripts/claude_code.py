"""Parses Claude Code's JSONL transcripts into turns, line by line.

A turn's external id is the entry's `uuid`, or the id of the tool call. A tool call becomes a turn
when its result arrives. Injected text (reminders, command echoes, compaction summaries) and
thinking are dropped. Prompts in a sidechain count as the assistant's.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Final

from reverie.agent.transcripts.turns import (
    ParsedTurn,
    TurnRole,
    dict_or_empty,
    drop_oldest_calls,
    text_or_empty,
)
from reverie.domain.text.truncation import MAX_TOOL_BYTES, truncate_middle

_INJECTED_TAG: Final = re.compile(
    r"<(system-reminder|command-name|command-message|command-args|command-contents"
    r"|local-command-stdout|local-command-stderr|local-command-caveat|user-prompt-submit-hook)>"
)
_INJECTED_PREFIXES: Final = (
    "Caveat: The messages below were generated",
    "[Request interrupted by user",
)
_DISPLAYED_ARGUMENTS: Final = (
    "command",
    "description",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "url",
)


class ClaudeCodeParser:
    """A parser that reads lines in file order. `pending_calls`: calls without a result, by id."""

    def __init__(self) -> None:
        self.pending_calls: dict[str, dict[str, Any]] = {}

    def parse_line(self, line: str) -> list[ParsedTurn]:
        """Returns the turns that a line completes; none if it is no entry. Never raises."""
        try:
            return self.parse_entry(json.loads(line))
        except (ValueError, RecursionError):
            return []

    def parse_entry(self, entry: object) -> list[ParsedTurn]:
        """The turns that a decoded line completes."""
        if not isinstance(entry, dict) or text_or_empty(entry.get("type")) not in {
            "user",
            "assistant",
        }:
            return []
        if entry.get("isMeta") or entry.get("isCompactSummary"):
            return []
        content = dict_or_empty(entry.get("message")).get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list):
            return []
        return self._parse_blocks(entry, [block for block in blocks if isinstance(block, dict)])

    def _parse_blocks(
        self, entry: dict[str, Any], blocks: list[dict[str, Any]]
    ) -> list[ParsedTurn]:
        at, is_sidechain = parse_timestamp(entry.get("timestamp")), bool(entry.get("isSidechain"))
        turns = []
        text = "\n\n".join(str(block["text"]) for block in blocks if _is_text_block(block))
        text = remove_elements(text, _INJECTED_TAG).strip()
        if text and isinstance(entry.get("uuid"), str) and not text.startswith(_INJECTED_PREFIXES):
            role: TurnRole = "user" if entry["type"] == "user" and not is_sidechain else "assistant"
            turns.append(ParsedTurn(entry["uuid"], role, text, at, sidechain=is_sidechain))
        for block in blocks:
            if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                self.pending_calls[block["id"]] = block
                drop_oldest_calls(self.pending_calls)
            elif block.get("type") == "tool_result":
                call = self.pending_calls.pop(str(block.get("tool_use_id")), None)
                if call is not None:
                    turns.append(_build_tool_turn(call, block, at, is_sidechain))
        return turns


def format_tool_call(arguments: dict[str, Any], output: str, failed: bool) -> str:
    """Formats a tool call as a turn's content: the request, then the result."""
    displayed = {
        name: arguments[name]
        for name in _DISPLAYED_ARGUMENTS
        if isinstance(arguments.get(name), str)
    }
    result = f"Error: {output}" if failed and "rror" not in output[:200] else output
    return truncate_middle(
        f"{json.dumps(displayed, ensure_ascii=False)}\n```\n{result}\n```", MAX_TOOL_BYTES
    )


def _build_tool_turn(
    call: dict[str, Any], result: dict[str, Any], at: datetime | None, is_sidechain: bool
) -> ParsedTurn:
    content = format_tool_call(
        dict_or_empty(call.get("input")),
        extract_text(result.get("content")),
        bool(result.get("is_error")),
    )
    return ParsedTurn(
        call["id"], "tool", content, at, str(call.get("name") or "tool"), None, is_sidechain
    )


def extract_text(content: object) -> str:
    """The text of a result: itself, or its text blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(
        str(block["text"]) for block in blocks if isinstance(block, dict) and _is_text_block(block)
    )


def _is_text_block(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def parse_timestamp(value: object) -> datetime | None:
    """Parses a time in JSON; None if it is invalid or has no time zone."""
    try:
        parsed = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return parsed if parsed.tzinfo else None


def remove_elements(text: str, opening: re.Pattern[str]) -> str:
    """The text without the elements whose opening tag matches; its first group is their name.

    A tag that is never closed is looked for once, so that many of them take linear time.
    """
    parts, position, unclosed = list[str](), 0, set[str]()
    for match in opening.finditer(text):
        name = match[1]
        if match.start() < position or name in unclosed:
            continue
        end = text.find(f"</{name}>", match.end())
        if end < 0:
            unclosed.add(name)
            continue
        parts.append(text[position : match.start()])
        position = end + len(f"</{name}>")
        position += len(text[position:]) - len(text[position:].lstrip())
    return "".join([*parts, text[position:]])
