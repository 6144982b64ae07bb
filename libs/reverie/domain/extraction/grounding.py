"""Checks that a text from a language model is supported by its source."""

from __future__ import annotations

import re

from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.text.index_terms import index_text

MIN_WORD_SHARE = 0.3
"""Of the words of a memory, those that must have been said; the rest is how it was put."""

_STEM_LENGTH = 5
_CODE_SPAN = re.compile(r"`([^`\n]{2,})`")
_NUMBER = re.compile(r"\d[\d.,]*\d")
_PROMPT_INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s+(?:(?:all|any|the|your|my|these|previous|prior|above"
    r"|earlier)\s+)*(?:instructions?|rules|prompts?)\b"
    r"|\b(?:your|the) system prompt\b|(?:忽略|无视|忘记).{0,8}(?:指令|指示|提示词)",
    re.I,
)


def contains_instructions(content: str) -> bool:
    """Whether a text speaks to a language model rather than of the work."""
    return _PROMPT_INJECTION.search(content) is not None


def is_grounded(content: str, source_text: str) -> bool:
    """Whether every name and number of a memory was said, and enough of its words."""
    lower = source_text.lower()
    mentioned = {_file_name(path) for path in extract_paths(content)} | {
        code.strip() for code in _CODE_SPAN.findall(content)
    }
    if any(name.lower() not in lower for name in mentioned | set(_NUMBER.findall(content))):
        return False
    return compute_word_overlap(content, source_text) >= MIN_WORD_SHARE


def compute_word_overlap(content: str, source_text: str) -> float:
    """The share of the words of one text that stand in another, by their beginnings; 0 to 1."""
    words = _stem_words(content)
    return len(words & _stem_words(source_text)) / len(words) if words else 0.0


def _file_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


def _stem_words(text: str) -> set[str]:
    """The first letters of each word; short words of letters say nothing."""
    words = index_text(text).split()
    return {word[:_STEM_LENGTH] for word in words if len(word) > 3 or not word.isascii()}
