"""Parsed turns and transcripts: the common output of all transcript parsers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

TurnRole = Literal["user", "assistant", "tool"]

MAX_PENDING_CALLS: Final = 500
"""Tool calls without a result that a reader remembers."""


@dataclass(frozen=True)
class ParsedTurn:
    """One message, or one tool call with its output.

    `external_id` is the same whenever the same file is read, so sending it twice is harmless. `at`
    is the time in the file, not sorted; None if the file has none.
    """

    external_id: str
    role: TurnRole
    content: str
    at: datetime | None = None
    tool: str | None = None
    tool_type: str | None = None
    sidechain: bool = False


def text_or_empty(value: object) -> str:
    """Returns the value of a field if it is text, else the empty text."""
    return value if isinstance(value, str) else ""


def dict_or_empty(value: object) -> dict[str, Any]:
    """Returns the value of a field if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def drop_oldest_calls(calls: dict[str, Any]) -> None:
    """Deletes the oldest calls: most of those still without a result never get one."""
    while len(calls) > MAX_PENDING_CALLS:
        del calls[next(iter(calls))]
