"""Cuts long texts of turns."""

from __future__ import annotations

from typing import Final

MAX_TOOL_BYTES: Final = 12_000
"""Of a tool's call and result in a turn."""
_TRUNCATION_MARK = "\n[…]\n"


def truncate_middle(content: str, limit: int) -> str:
    """Truncates to at most `limit` bytes of UTF-8; keeps the beginning and the end."""
    raw = content.encode(errors="replace")
    if len(raw) <= limit:
        return content
    available = max(limit - len(_TRUNCATION_MARK.encode()), 0)
    head, tail = available - available // 3, available // 3
    start = raw[:head].decode(errors="ignore")
    stop = raw[len(raw) - tail :].decode(errors="ignore") if tail else ""
    return f"{start}{_TRUNCATION_MARK if available else ''}{stop}"
