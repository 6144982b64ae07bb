"""Whether what a language model wrote was said: by its words, names and numbers. Pure."""

from __future__ import annotations

import re

from reverie.domain.anchors import paths
from reverie.domain.words import index_text

MIN_SHARE = 0.3
"""Of the words of a memory, those that must have been said; the rest is how it was put."""

_STEM = 5
_CODE = re.compile(r"`([^`\n]{2,})`")
_NUMBER = re.compile(r"\d[\d.,]*\d")
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s+(?:(?:all|any|the|your|my|these|previous|prior|above"
    r"|earlier)\s+)*(?:instructions?|rules|prompts?)\b"
    r"|\b(?:your|the) system prompt\b|(?:忽略|无视|忘记).{0,8}(?:指令|指示|提示词)",
    re.I,
)


def gives_orders(content: str) -> bool:
    """Whether a text speaks to a language model rather than of the work."""
    return _ORDERS.search(content) is not None


def is_grounded(content: str, said: str) -> bool:
    """Whether every name and number of a memory was said, and enough of its words."""
    lower = said.lower()
    named = {_end(path) for path in paths(content)} | {
        code.strip() for code in _CODE.findall(content)
    }
    if any(name.lower() not in lower for name in named | set(_NUMBER.findall(content))):
        return False
    return share_of(content, said) >= MIN_SHARE


def share_of(content: str, said: str) -> float:
    """The share of the words of one text that stand in another, by their beginnings; 0 to 1."""
    words = _stems(content)
    return len(words & _stems(said)) / len(words) if words else 0.0


def _end(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


def _stems(text: str) -> set[str]:
    """The first letters of each word; short words of letters say nothing."""
    words = index_text(text).split()
    return {word[:_STEM] for word in words if len(word) > 3 or not word.isascii()}
