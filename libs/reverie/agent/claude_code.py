"""Claude Code's JSONL transcripts into turns, line by line.

A line is an entry of the conversation: what the user said, what the agent said and the tools it
called, or what a tool gave back. A message's external id is the entry's `uuid`, a tool call's is
the call's own id; a call becomes a turn when its result is there. What the program itself put
into the conversation (reminders, command echoes, summaries of what was compacted) is nobody's
word and left out, as are thoughts. What a sub-agent is told in a sidechain is the assistant's.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Final

from reverie.agent.transcripts import ParsedTurn, Role, clip, keep_last, word

TOOL_BYTES: Final = 12_000
_OWN: Final = re.compile(
    r"<(system-reminder|command-name|command-message|command-args|command-contents"
    r"|local-command-stdout|local-command-stderr|local-command-caveat|user-prompt-submit-hook)>"
    r".*?</\1>\s*",
    re.S,
)
_NOBODY: Final = ("Caveat: The messages below were generated", "[Request interrupted by user")
_SHOWN: Final = ("command", "description", "file_path", "notebook_path", "path", "pattern", "url")


class Reader:
    """Takes lines in file order. `calls`: those without a result yet, by their id."""

    def __init__(self) -> None:
        self.calls: dict[str, dict[str, Any]] = {}

    def take(self, line: str) -> list[ParsedTurn]:
        """The turns that a line completes; none where it is no entry. Never raises."""
        try:
            return self.entry(json.loads(line))
        except (ValueError, RecursionError):
            return []

    def entry(self, entry: object) -> list[ParsedTurn]:
        """The turns that a decoded line completes."""
        if not isinstance(entry, dict) or word(entry.get("type")) not in {"user", "assistant"}:
            return []
        if entry.get("isMeta") or entry.get("isCompactSummary"):
            return []
        message = entry.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list):
            return []
        return self._turns(entry, [one for one in blocks if isinstance(one, dict)])

    def _turns(self, entry: dict[str, Any], blocks: list[dict[str, Any]]) -> list[ParsedTurn]:
        at, aside = time_of(entry.get("timestamp")), bool(entry.get("isSidechain"))
        turns = []
        said = "\n\n".join(str(one["text"]) for one in blocks if _is_text(one))
        said = _OWN.sub("", said).strip()
        if said and isinstance(entry.get("uuid"), str) and not said.startswith(_NOBODY):
            role: Role = "user" if entry["type"] == "user" and not aside else "assistant"
            turns.append(ParsedTurn(entry["uuid"], role, said, at, sidechain=aside))
        for one in blocks:
            if one.get("type") == "tool_use" and isinstance(one.get("id"), str):
                self.calls[one["id"]] = one
                keep_last(self.calls)
            elif one.get("type") == "tool_result":
                call = self.calls.pop(str(one.get("tool_use_id")), None)
                if call is not None:
                    turns.append(_tool_turn(call, one, at, aside))
        return turns


def told(asked: dict[str, Any], output: str, failed: bool) -> str:
    """A tool call as a turn's content: what was asked, then what came of it."""
    shown = {name: asked[name] for name in _SHOWN if isinstance(asked.get(name), str)}
    result = f"Error: {output}" if failed and "rror" not in output[:200] else output
    return clip(f"{json.dumps(shown, ensure_ascii=False)}\n```\n{result}\n```", TOOL_BYTES)


def _tool_turn(
    call: dict[str, Any], result: dict[str, Any], at: datetime | None, aside: bool
) -> ParsedTurn:
    asked = call.get("input")
    content = told(
        asked if isinstance(asked, dict) else {},
        text_of(result.get("content")),
        bool(result.get("is_error")),
    )
    return ParsedTurn(call["id"], "tool", content, at, str(call.get("name") or "tool"), None, aside)


def text_of(content: object) -> str:
    """The text of a result: itself, or its text blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(one["text"]) for one in blocks if isinstance(one, dict) and _is_text(one))


def _is_text(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def time_of(said: object) -> datetime | None:
    """A moment as JSON tells it; None where it is none, or names no zone."""
    try:
        found = datetime.fromisoformat(str(said))
    except ValueError:
        return None
    return found if found.tzinfo else None
