"""The words by which memories and turns are found. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.domain.fence import LEFT_OUT
from reverie.domain.words import index_text

MADE_KEYS = ("file:", "session:", "entity:", "topic:")
"""Beginnings of the keys that the system itself gives: nobody searches for them."""


def memory_words(key: str | None, content: str, tags: Sequence[str]) -> str:
    """The words of a memory: of its key, its content and its tags."""
    own = None if key is None or key.lower().startswith(MADE_KEYS) else key
    return index_text(" ".join(filter(None, (own, content, *tags))))


def turn_words(role: str, content: str) -> str:
    """The words of a turn: none of a tool's output, and none where only recalled memory was."""
    return "" if role == "tool" or content == LEFT_OUT else index_text(content)
