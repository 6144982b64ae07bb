"""Aider's chat history (`.aider.chat.history.md`) into sessions and turns, line by line.

A file holds many sessions, each under `# aider chat started at TIME` (local time). What the user
said stands behind `#### `, what the program said behind `> `, the rest is the assistant's. Inside
a code fence both marks are content, until the program reports (`> Tokens:`), which it does behind
every answer. Turns are numbered from 0 in each session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from reverie.agent.specstory import fence_after
from reverie.agent.transcripts import ParsedTurn, Role, clip

MOST_BYTES: Final = 1_000_000
"""Of a message; what is behind that is left out."""
TOOL_BYTES: Final = 12_000
_STARTED: Final = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$")
_CHATTER: Final = re.compile(
    r"(?:Tokens:|Aider v|Model:|Main model:|Weak model:|Editor model:|Git repo:|Repo-map:|Use /help"
    r"|Restored previous|Cost estimates|Added .* to the chat|Removed .* from the chat|Dropping"
    r"|.*\?\s*\(Y\)es|\S*/?aider\b|Warning for|Did you mean|You can skip|https?://\S+$|\s*$)",
    re.I,
)
_MARKS: Final[dict[Role, str]] = {"user": "#### ", "tool": "> ", "assistant": ""}


@dataclass(frozen=True)
class Chat:
    """Where a session begins; `nth` counts those that began in the same second."""

    started: datetime
    nth: int = 0


@dataclass
class _Message:
    role: Role
    lines: list[str] = field(default_factory=list)
    size: int = 0

    def take(self, line: str) -> None:
        if self.size < MOST_BYTES:
            self.lines.append(line[:MOST_BYTES])
            self.size += len(line) + 1

    def text(self) -> str:
        lines = self.lines
        if self.role == "tool":
            lines = [line for line in lines if not _CHATTER.match(line)]
            return clip("\n".join(lines).strip(), TOOL_BYTES)
        return "\n".join(lines).strip()


def started(line: str) -> datetime | None:
    """When a session began, where the line is its first; local time as the machine has it."""
    found = _STARTED.match(line)
    try:
        return datetime.fromisoformat(found[1]).astimezone() if found else None
    except (ValueError, OverflowError, OSError):
        return None


def parse(lines: Iterable[str]) -> Iterator[Chat | ParsedTurn]:
    """Each session's beginning, then its turns. Holds one message at a time; never raises.

    What stands before the first beginning is skipped.
    """
    chat: Chat | None = None
    message, fence, number = _Message("assistant"), "", 0
    for raw in lines:
        line = raw.rstrip("\r\n")
        begun = started(line)
        role: Role | None = None if begun else _role(line, fence)
        if begun or role != message.role:
            if chat is not None and (content := message.text()):
                tool = "aider" if message.role == "tool" else None
                yield ParsedTurn(f"{number:05d}", message.role, content, chat.started, tool)
                number += 1
            message = _Message(role or "assistant")
        if begun:
            nth = chat.nth + 1 if chat and chat.started == begun else 0
            chat, number, fence = Chat(begun, nth), 0, ""
            yield chat
        elif role is not None:
            message.take(line.removeprefix(_MARKS[role]).rstrip())
            fence = fence_after(fence, line) if role == "assistant" else ""
    if chat is not None and (content := message.text()):
        tool = "aider" if message.role == "tool" else None
        yield ParsedTurn(f"{number:05d}", message.role, content, chat.started, tool)


def _role(line: str, fence: str) -> Role:
    if fence and not line.startswith("> Tokens:"):
        return "assistant"
    if line.startswith("#### "):
        return "user"
    return "tool" if line.startswith("> ") else "assistant"
