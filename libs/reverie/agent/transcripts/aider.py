"""Parses aider's chat history (`.aider.chat.history.md`) into sessions and turns.

A file contains many sessions. User lines begin with `#### `, program output with `> `, and the rest
is the assistant's. Inside a code fence both prefixes are content until the next `> Tokens:`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from reverie.agent.transcripts.specstory import advance_fence
from reverie.agent.transcripts.turns import ParsedTurn, TurnRole
from reverie.domain.text.truncation import MAX_TOOL_BYTES, truncate_middle

MAX_MESSAGE_BYTES: Final = 1_000_000
"""Limit per message; the rest is left out."""
_SESSION_START: Final = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$")
_PROGRAM_NOISE: Final = re.compile(
    r"(?:Tokens:|Aider v|Model:|Main model:|Weak model:|Editor model:|Git repo:|Repo-map:|Use /help"
    r"|Restored previous|Cost estimates|Added .* to the chat|Removed .* from the chat|Dropping"
    r"|.*\?\s*\(Y\)es|\S*/?aider\b|Warning for|Did you mean|You can skip|https?://\S+$|\s*$)",
    re.I,
)
_ROLE_PREFIXES: Final[dict[TurnRole, str]] = {"user": "#### ", "tool": "> ", "assistant": ""}


@dataclass(frozen=True)
class AiderSession:
    """The start of a session; `ordinal` counts those that began in the same second."""

    started_at: datetime
    ordinal: int = 0


@dataclass
class _AiderMessage:
    role: TurnRole
    lines: list[str] = field(default_factory=list)
    size: int = 0

    def add_line(self, line: str) -> None:
        if self.size < MAX_MESSAGE_BYTES:
            self.lines.append(line[:MAX_MESSAGE_BYTES])
            self.size += len(line) + 1

    def render(self) -> str:
        lines = self.lines
        if self.role == "tool":
            lines = [line for line in lines if not _PROGRAM_NOISE.match(line)]
            return truncate_middle("\n".join(lines).strip(), MAX_TOOL_BYTES)
        return "\n".join(lines).strip()


def parse_session_start(line: str) -> datetime | None:
    """Parses the start time of a session from its first line, in the machine's time zone.

    Returns None for any other line.
    """
    match = _SESSION_START.match(line)
    try:
        return datetime.fromisoformat(match[1]).astimezone() if match else None
    except (ValueError, OverflowError, OSError):
        return None


def parse_history(lines: Iterable[str]) -> Iterator[AiderSession | ParsedTurn]:
    """Yields the start of each session, then its turns.

    Keeps one message at a time in memory, and never raises. Text before the first start is skipped.
    """
    session: AiderSession | None = None
    message, fence, number = _AiderMessage("assistant"), "", 0
    for raw in lines:
        line = raw.rstrip("\r\n")
        started_at = parse_session_start(line)
        role: TurnRole | None = None if started_at else _line_role(line, fence)
        if started_at or role != message.role:
            if session is not None and (content := message.render()):
                tool = "aider" if message.role == "tool" else None
                yield ParsedTurn(f"{number:05d}", message.role, content, session.started_at, tool)
                number += 1
            message = _AiderMessage(role or "assistant")
        if started_at:
            ordinal = session.ordinal + 1 if session and session.started_at == started_at else 0
            session, number, fence = AiderSession(started_at, ordinal), 0, ""
            yield session
        elif role is not None:
            message.add_line(line.removeprefix(_ROLE_PREFIXES[role]).rstrip())
            fence = advance_fence(fence, line) if role == "assistant" else ""
    if session is not None and (content := message.render()):
        tool = "aider" if message.role == "tool" else None
        yield ParsedTurn(f"{number:05d}", message.role, content, session.started_at, tool)


def _line_role(line: str, fence: str) -> TurnRole:
    if fence and not line.startswith("> Tokens:"):
        return "assistant"
    if line.startswith("#### "):
        return "user"
    return "tool" if line.startswith("> ") else "assistant"
