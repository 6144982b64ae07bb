"""Who says a memory that is one line of a conversation, and of whom a question asks. Pure.

What people do they mostly tell themselves: of LoCoMo's turns that answer a question about somebody,
94 in 100 are by that one. What others say in reply has the same words and is about them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache

from reverie.domain.kinds import is_kind

BY_ANOTHER = 0.75
"""What a line counts that somebody else says than who is asked about."""
LEAST_LINES = 3
"""Who says fewer among what was found is not known to speak: `Note:` and `Redis:` begin notes."""
_LONGEST_NAME = 60
_LONGEST_LINE = 2_000
_NAMED = r"[^\W\d_][\w.'’-]*"
_LINE = re.compile(rf"^(?:\[[^\]\n]{{1,30}}\] ?)?\**({_NAMED}(?: {_NAMED}){{0,2}})\**:\**\s", re.M)
_NOTES = frozenset({"answer", "cause", "note", "question", "reason", "result", "update", "why"})
"""Beside the kinds, what notes begin with as lines of a conversation do."""
_NOBODY: frozenset[str] = frozenset()
_WORD = re.compile(r"[^\W\d_][\w-]*")


def people(question: str) -> frozenset[str]:
    """The words that a question writes large, as names are; its first word only as an owner's."""
    words = list(_WORD.finditer(question))
    own = question[words[0].end() :].startswith(("'s ", "’s ")) if words else False
    return frozenset(one[0] for one in words[0 if own else 1 :] if one[0][0].isupper())


def speaker(text: str) -> frozenset[str]:
    """The names of who says a text that is one line, `NAME: ...`; none of a text that is more."""
    near = len(text) <= _LONGEST_LINE and text.find(":", 0, _LONGEST_NAME) > 0
    first = _LINE.match(text) if near else None
    if first is None:
        return _NOBODY
    label = first[1]
    if "\n" in text and any(one[1] != label and _names(one[1]) for one in _LINE.finditer(text)):
        return _NOBODY
    return _names(label)


def heard(texts: Iterable[str], asked: Collection[str]) -> frozenset[str]:
    """Those of the names `asked` who say `LEAST_LINES` of the texts or more."""
    if not asked:
        return _NOBODY
    lines = Counter(name for text in texts for name in speaker(text) if name in asked)
    return frozenset(name for name, many in lines.items() if many >= LEAST_LINES)


def by_who_is_asked_about(text: str, who: Collection[str]) -> float:
    """The factor of a text: less than 1 where it is a line of somebody else than `who`."""
    by = speaker(text)
    return BY_ANOTHER if by and by.isdisjoint(who) else 1.0


@lru_cache(256)
def _names(label: str) -> frozenset[str]:
    """The words of a label, if it is a name."""
    large = all(word[0].isupper() for word in label.split())
    notes = is_kind(label) or label.lower() in _NOTES
    return frozenset(_WORD.findall(label)) if large and not notes else _NOBODY
