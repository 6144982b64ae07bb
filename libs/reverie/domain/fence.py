"""The fence around recalled memory, so that it is told from what people and agents say. Pure.

What is rendered for an agent stands between two tags; what comes back between them, in a turn or
in something to remember, was known before and is cut out.
"""

from __future__ import annotations

import re

OPEN = "<reverie-memory>"
CLOSE = "</reverie-memory>"
TITLE = "## Project memory (Reverie)"
LEFT_OUT = "[recalled memory left out]"
"""What stands for a turn that was nothing but recalled memory."""

_TAG = re.compile(r"<(?=\s*/?\s*reverie-memory)", re.I)
# On one line, with the line ends lost or escaped. The title tells it from talk about the tag.
_INLINE = re.compile(
    rf"{OPEN}(?:[ \t]|\\[nrt])*{re.escape(TITLE)}[^\n]*?(?:{CLOSE}|$)", re.I | re.M
)
_QUOTES = " \t>|│"
_EDGE = " \t\r\n|│"


def wrap(text: str) -> str:
    """The text between the tags, each on a line of its own. Its parts are `harmless` already."""
    return f"{OPEN}\n{text}\n{CLOSE}"


def harmless(text: str) -> str:
    """The text with the tags in it broken, so that it can neither end nor begin a fence."""
    return _TAG.sub("‹", text)


def strip(text: str) -> str:
    """The text without what is fenced, as it is where nothing is; blank where all of it is.

    The tags may be indented or quoted with `>` or `|`. A fence that nothing ends goes on to the
    end of the text, or of its quotation; an end that nothing began is cut out alone. A tag
    within a sentence is no fence.
    """
    if "reverie-memory>" not in text.lower():
        return text
    lines = _INLINE.sub("", text).splitlines(keepends=True)
    last = max((n for n, line in enumerate(lines) if CLOSE in line.lower()), default=-1)
    kept: list[str] = []
    fence = ""
    for n, line in enumerate(lines):
        if fence and n > last and _quoted(fence) and not _quoted(line):
            fence = ""
        if fence and CLOSE in line.lower():
            fence = ""
            kept.append(_after_close(line))
        elif not fence and _bare(line) == OPEN:
            fence = line
        elif not fence and _bare(line) != CLOSE:
            kept.append(line)
    return "".join(kept)


def _after_close(line: str) -> str:
    """What is said behind the end of a fence, if anything."""
    tail = line[line.lower().index(CLOSE) + len(CLOSE) :]
    return tail if _bare(tail) else ""


def _bare(line: str) -> str:
    """What a line says beside its indentation, its quotation and the frame around it."""
    return line.lstrip(_QUOTES).rstrip(_EDGE).lower()


def _quoted(line: str) -> bool:
    return line.lstrip().startswith(">")
