"""The tags that fence recalled memory in a text, and the removal of fenced text from input."""

from __future__ import annotations

import re

OPEN_TAG = "<reverie-memory>"
CLOSE_TAG = "</reverie-memory>"
MEMORY_TITLE = "## Project memory (Reverie)"
OMITTED_PLACEHOLDER = "[recalled memory left out]"
"""Replaces a turn that was nothing but recalled memory."""

_TAG_START = re.compile(r"<(?=\s*+(?:/\s*+)?reverie-memory)", re.I)
# On one line, with the line ends lost or escaped. The title distinguishes it from text about the
# tag.
_INLINE_FENCE = re.compile(
    rf"{OPEN_TAG}(?:[ \t]|\\[nrt])*{re.escape(MEMORY_TITLE)}[^\n]*?(?:{CLOSE_TAG}|$)", re.I | re.M
)
_QUOTES = " \t>|│"
_LINE_EDGE = " \t\r\n|│"


def wrap_in_fence(text: str) -> str:
    """Returns the text, whose tags are escaped already, between the tags, each on its own line."""
    return f"{OPEN_TAG}\n{text}\n{CLOSE_TAG}"


def escape_fence_tags(text: str) -> str:
    """The text with its tags broken, so that they neither begin nor end a fence."""
    return _TAG_START.sub("‹", text)


def strip_fenced(text: str) -> str:
    """The text without its fenced parts; blank if all of it is fenced.

    The tags may be indented or quoted with `>` or `|`. A fence without an end reaches to the end of
    the text or of its quotation. An end without a beginning is removed alone. A tag within a
    sentence is no fence.
    """
    if "reverie-memory>" not in text.lower():
        return text
    lines = _INLINE_FENCE.sub("", text).splitlines(keepends=True)
    last = max((n for n, line in enumerate(lines) if CLOSE_TAG in line.lower()), default=-1)
    remaining: list[str] = []
    fence = ""
    for n, line in enumerate(lines):
        if fence and n > last and _is_quoted(fence) and not _is_quoted(line):
            fence = ""
        if fence and CLOSE_TAG in line.lower():
            fence = ""
            tail = line[line.lower().index(CLOSE_TAG) + len(CLOSE_TAG) :]
            remaining.append(tail if _strip_decoration(tail) else "")
        elif not fence and _strip_decoration(line) == OPEN_TAG:
            fence = line
        elif not fence and _strip_decoration(line) != CLOSE_TAG:
            remaining.append(line)
    return "".join(remaining)


def _strip_decoration(line: str) -> str:
    """Returns the text of a line without indentation, quotation and frame."""
    return line.lstrip(_QUOTES).rstrip(_LINE_EDGE).lower()


def _is_quoted(line: str) -> bool:
    return line.lstrip().startswith(">")
