"""The identifiers of code that a text names, as they are written. Pure.

Only shapes that ordinary words do not have: humps, underscores, a call, a member, or code marks.
"""

from __future__ import annotations

import re

MOST = 200
SHORTEST = 3

_NAME = r"[A-Za-z_$][\w$]*"
_MARKED = re.compile(r"`([^`\n]{1,200})`")
_SHAPES = re.compile(
    rf"(?<![\w$./-])(?:"
    rf"(?P<call>{_NAME})(?=\()"
    rf"|(?P<member>{_NAME}(?:(?:\.|::|->|\#){_NAME})+)"
    rf"|(?P<humps>[A-Za-z][a-z0-9]*[a-z0-9][A-Z][\w$]*|[A-Z]{{2,}}[a-z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)"
    rf"|(?P<under>[A-Za-z]\w*_\w+|_\w+_\w+)"
    rf")(?![\w$/])"
)
_WORD = re.compile(_NAME)
# From the first character of a word on: anywhere in it would take time by its square.
_FILE = re.compile(r"(?<![\w./-])[\w./-]*\w\.[a-z]{1,5}\b|(?<![\w.-])[\w.-]+/[\w./-]+")


def code_names(text: str) -> frozenset[str]:
    """The plain names, at most `MOST`: of `Store.load()` both, for a change may name either."""
    plain = _FILE.sub(" ", text)
    found: dict[str, None] = {}
    for marked in _MARKED.findall(plain):
        if len(words := _WORD.findall(marked)) <= 3:
            found |= dict.fromkeys(words)
    for match in _SHAPES.finditer(plain):
        found |= dict.fromkeys(_WORD.findall(match[0]))
    return frozenset([name for name in found if len(name) >= SHORTEST][:MOST])
