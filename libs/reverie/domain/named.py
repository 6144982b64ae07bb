"""Questions that ask by a name alone: what has it comes before what has not. Pure.

Models break a name into pieces that say something else, and what is near to the pieces may be
surer, newer or better linked than the one memory that has the name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Protocol
from uuid import UUID

MAX_NAMES = 20
_WORDS = """
a about all an and any are can did do does find for from get give has have how i in is it know
me of on or please remember say says search show tell that the there this to was we what when
where which who why with you
"""
_ASKING = frozenset(_WORDS.split())
_ROUND = ".,;:?!\"'`()[]<>“”"
_MIXED = r"(?=[^A-Za-z]*[A-Za-z])(?=\D*\d)[\w./:#@+-]{5,}"
HUMPED = r"[a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+"
"""`camelCase` and `PascalCase`, alone or within a sentence."""
_NAME = re.compile(
    rf"{_MIXED}|{HUMPED}"
    r"|\w*[A-Za-z0-9]_[A-Za-z0-9]\w*"
    r"|(?:[\w.@~-]+/){2,}[\w.@-]+|[\w./-]+\.[a-z]{1,4}",
    re.ASCII,
)


def named_alone(text: str) -> tuple[str, ...]:
    """The names that a question asks by, as `plain` gives them; none where it says more than names.

    A name is a word of letters and digits (5 or more), `camelCase`, `snake_case`, or a path.
    """
    words = [word.strip(_ROUND) for word in text.split()]
    left = [word for word in words if word and word.lower() not in _ASKING]
    if len(left) > MAX_NAMES or not all(_NAME.fullmatch(word) for word in left):
        return ()
    return tuple(dict.fromkeys(map(plain, left)))


def plain(text: str) -> str:
    """A text or a name as they are compared: in whatever case, `getUser` like `get_user`."""
    return text.replace("_", "").lower()


def holds_one(content: str, names: Sequence[str]) -> bool:
    """Whether a text has one of the names, which are `plain`, as a whole."""
    folded = plain(content) if names else ""
    # Most texts hold none, not even within another word.
    near = [name for name in shortest(tuple(names)) if name in folded]
    return bool(near) and any(_whole(name, folded) for name in names)


def _whole(name: str, folded: str) -> bool:
    """Whether a name stands in a text with no letter or digit at either end."""
    at = folded.find(name)
    while at >= 0:
        end = at + len(name)
        if not (_within(folded[max(at - 1, 0) : at]) or _within(folded[end : end + 1])):
            return True
        at = folded.find(name, at + 1)
    return False


def _within(beside: str) -> bool:
    return beside.isascii() and beside.isalnum()


@lru_cache(64)
def shortest(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names that no other of them is within: what holds none of these holds none at all."""
    found: list[str] = []
    for name in sorted(names, key=len):
        if not any(one in name for one in found):
            found.append(name)
    return tuple(found)


class Text(Protocol):
    """Whatever has a text."""

    @property
    def content(self) -> str: ...


def holders(
    texts: Mapping[UUID, Text], names: Sequence[str], newer: Mapping[UUID, UUID]
) -> set[UUID]:
    """Those whose text has one of the names, and what took their place."""
    found = {one for one, text in texts.items() if holds_one(text.content, names)}
    after = found
    while after := {newer[one] for one in after if one in newer} - found:
        found |= after
    return found
