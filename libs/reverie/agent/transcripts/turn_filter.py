"""Selects and encodes the turns to send: new ones only, without trivial tool calls."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Final

from reverie.agent.tool_names import BOOKKEEPING_TOOLS, READ_TOOLS
from reverie.agent.transcripts.batch_limits import MAX_LINE_BYTES
from reverie.agent.transcripts.claude_code import ClaudeCodeParser
from reverie.agent.transcripts.turns import ParsedTurn
from reverie.domain.text.truncation import truncate_middle

MAX_READ_BYTES: Final = 4_000_000
"""Amount of a transcript that is read at once."""
MAX_PENDING_BYTES: Final = 400_000
"""Distance from the end within which a tool call still waits for its result."""
MAX_TURN_BYTES: Final = 60_000
SMALL_OUTPUT_CHARS: Final = 2_000
"""Characters of a read that are not worth a turn."""

_READ_COMMAND: Final = re.compile(
    r"\s*(?:ls|ll|pwd|cd|cat|head|tail|wc|echo|which|type|whoami|date|clear|tree|stat|file|env"
    r"|true|sleep|find|rg|grep|sed -n|git (?:status|log|diff|show|branch|remote))(?:\s|$)"
)
_FAILURE: Final = re.compile(
    r"^(?:Error|Exit code:? [1-9]|fatal:|Traceback)|<tool_use_error>", re.M
)


def read_new_turns(path: str, cursor: int) -> tuple[list[ParsedTurn], int, bool]:
    """Returns the turns after a position, the next position, and whether there are more.

    A call that still waits for its result is read again the next time.
    """
    if not os.path.isfile(path):
        return [], cursor, False
    size = os.path.getsize(path)
    cursor = cursor if cursor <= size else 0
    parser, position = ClaudeCodeParser(), cursor
    turns: list[ParsedTurn] = []
    call_positions: dict[str, int] = {}
    with open(path, "rb") as file:
        file.seek(cursor)
        while position - cursor < MAX_READ_BYTES and (line := file.readline()).endswith(b"\n"):
            if len(line) <= MAX_LINE_BYTES:
                turns += parser.parse_line(line.decode("utf-8", "replace"))
            call_positions = {
                call: call_positions.get(call, position) for call in parser.pending_calls
            }
            position += len(line)
    has_more = position - cursor >= MAX_READ_BYTES
    awaited = [
        start
        for start in call_positions.values()
        if not has_more and position - start <= MAX_PENDING_BYTES
    ]
    return turns, min([position, *awaited]), has_more


def encode_turn(turn: ParsedTurn) -> dict[str, Any]:
    """Encodes a turn in the gateway's form."""
    body: dict[str, Any] = {
        "role": turn.role,
        "content": truncate_middle(_sanitize_text(turn.content), MAX_TURN_BYTES),
        "external_id": _sanitize_text(turn.external_id)[:200],
    }
    if turn.at is not None:
        body["at"] = turn.at.isoformat()
    if turn.tool:
        body["tool"] = _sanitize_text(turn.tool)[:200]
    return body


def _sanitize_text(text: str) -> str:
    """Replaces lone surrogates and NUL, which a command may print."""
    return text.encode(errors="replace").decode().replace("\0", "\ufffd")


def is_worth_sending(turn: ParsedTurn) -> bool:
    """Returns whether a turn is more than reading or listing."""
    if turn.role != "tool":
        return bool(turn.content.strip())
    head, _, output = turn.content.partition("\n```\n")
    return not is_noise(turn.tool or "", _parse_command(head), output)


def is_noise(tool: str, command: str, output: str) -> bool:
    """Returns whether a call is Reverie's own, or a successful search or read."""
    if tool in BOOKKEEPING_TOOLS or "reverie" in tool.lower():
        return True
    if _FAILURE.search(output):
        return False
    if tool in READ_TOOLS:
        return len(output) <= SMALL_OUTPUT_CHARS
    parts = [part for part in re.split(r"&&|\|\||[;|\n]", command) if part.strip()]
    return bool(parts) and all(_READ_COMMAND.match(part) for part in parts)


def _parse_command(head: str) -> str:
    try:
        arguments = json.loads(head)
    except ValueError:
        return ""
    return str(arguments.get("command", "")) if isinstance(arguments, dict) else ""
