"""What of a transcript is sent: what is new since the last time, without what nobody will ask for.

Looking around (`ls`, `pwd`, short reads) is left out unless it failed; so are the tools of
Reverie itself, for what was recalled was known before.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Final

from reverie.agent.claude_code import Reader
from reverie.agent.transcripts import ParsedTurn, clip

MOST_BYTES: Final = 4_000_000
"""Of a transcript, read at once."""
HELD_BYTES: Final = 400_000
"""How far behind the end a tool call may stand whose result is still awaited."""
TURN_BYTES: Final = 60_000
TINY: Final = 2_000
"""Characters of a read that are not worth a turn."""

_LOOKING: Final = {"Read", "Glob", "Grep", "LS", "NotebookRead", "ToolSearch"}
_OWN: Final = {"TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "BashOutput"}
_LOOK: Final = re.compile(
    r"\s*(?:ls|ll|pwd|cd|cat|head|tail|wc|echo|which|type|whoami|date|clear|tree|stat|file|env"
    r"|true|sleep|find|rg|grep|sed -n|git (?:status|log|diff|show|branch|remote))(?:\s|$)"
)
_FAILED: Final = re.compile(r"^(?:Error|Exit code:? [1-9]|fatal:|Traceback)|<tool_use_error>", re.M)


def read_new(path: str, cursor: int) -> tuple[list[ParsedTurn], int, bool]:
    """The turns behind a position, the next position, and whether there is more.

    A call whose result is awaited is read again the next time.
    """
    size = os.path.getsize(path)
    cursor = cursor if cursor <= size else 0
    reader, at = Reader(), cursor
    turns: list[ParsedTurn] = []
    begun: dict[str, int] = {}
    with open(path, "rb") as file:
        file.seek(cursor)
        while at - cursor < MOST_BYTES and (line := file.readline()).endswith(b"\n"):
            turns += reader.take(line.decode("utf-8", "replace"))
            begun = {call: begun.get(call, at) for call in reader.calls}
            at += len(line)
    more = at - cursor >= MOST_BYTES
    awaited = [start for start in begun.values() if not more and at - start <= HELD_BYTES]
    return turns, min([at, *awaited]), more


def as_sent(turn: ParsedTurn) -> dict[str, Any]:
    """A turn as the gateway takes it."""
    sent: dict[str, Any] = {
        "role": turn.role,
        "content": clip(_text(turn.content), TURN_BYTES),
        "external_id": _text(turn.external_id)[:200],
    }
    if turn.at is not None:
        sent["at"] = turn.at.isoformat()
    if turn.tool:
        sent["tool"] = _text(turn.tool)[:200]
    return sent


def _text(said: str) -> str:
    """Without what is no text: halves of characters, and NUL, which a command may well print."""
    return said.encode(errors="replace").decode().replace("\0", "\ufffd")


def is_worth(turn: ParsedTurn) -> bool:
    """Whether a turn says more than that somebody looked around."""
    if turn.role != "tool":
        return bool(turn.content.strip())
    head, _, output = turn.content.partition("\n```\n")
    return not is_noise(turn.tool or "", _command(head), output)


def is_noise(tool: str, command: str, output: str) -> bool:
    """Whether a call is Reverie's own, or looked around and found what it looked for."""
    if tool in _OWN or "reverie" in tool.lower():
        return True
    if _FAILED.search(output):
        return False
    if tool in _LOOKING:
        return len(output) <= TINY
    parts = [one for one in re.split(r"&&|\|\||[;|\n]", command) if one.strip()]
    return bool(parts) and all(_LOOK.match(one) for one in parts)


def _command(head: str) -> str:
    try:
        asked = json.loads(head)
    except ValueError:
        return ""
    return str(asked.get("command", "")) if isinstance(asked, dict) else ""
