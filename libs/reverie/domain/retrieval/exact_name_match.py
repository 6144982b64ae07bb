"""Exact matching of questions that consist of names only, such as an identifier or a path.

Embedding models split a name into pieces with other meanings, so memories that contain the name
rank first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from reverie.domain.text.characters import word_set

MAX_NAMES = 20
_QUERY_WORDS = word_set(
    """
a about all an and any are can did do does find for from get give has have how i in is it know
me of on or please remember say says search show tell that the there this to was we what when
where which who why with you
"""
)
_SURROUNDING_CHARS = ".,;:?!\"'`()[]<>“”"
_MIXED = r"(?=[^A-Za-z]*[A-Za-z])(?=\D*\d)[\w./:#@+-]{5,}"
CAMEL_CASE = r"[a-z0-9]++(?>(?:[A-Z][a-z0-9]*+)+)|[A-Z][a-z0-9]++(?>(?:[A-Z][a-z0-9]*+)+)"
"""`camelCase` and `PascalCase`, alone or within a sentence."""
_NAME = re.compile(
    rf"{_MIXED}|{CAMEL_CASE}"
    r"|(?=\w*?[A-Za-z0-9]_[A-Za-z0-9])\w+"
    r"|(?>(?:[\w.@~-]++/){2,})[\w.@-]+|[\w./-]+\.[a-z]{1,4}",
    re.ASCII,
)


def parse_name_query(text: str) -> tuple[str, ...]:
    """Returns the names that a question consists of, as `normalize_name` gives them.

    Returns none if the question contains more than names. A name is a word of letters and digits (5
    or more), `camelCase`, `snake_case`, or a path.
    """
    words = [word.strip(_SURROUNDING_CHARS) for word in text.split()]
    name_words = [word for word in words if word and word.lower() not in _QUERY_WORDS]
    if len(name_words) > MAX_NAMES or not all(_NAME.fullmatch(word) for word in name_words):
        return ()
    return tuple(dict.fromkeys(map(normalize_name, name_words)))


def normalize_name(text: str) -> str:
    """A text or a name as they are compared: in whatever case, `getUser` like `get_user`."""
    return text.replace("_", "").lower()


def contains_name(content: str, names: Sequence[str]) -> bool:
    """Returns whether a text contains one of the names, in the form of `normalize_name`, as a
    whole."""
    folded = normalize_name(content) if names else ""
    return any(
        name in folded and re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", folded)
        for name in names
    )


def select_occurring_names(texts: Iterable[str], names: Sequence[str]) -> tuple[str, ...]:
    """Selects the names that occur in any of the texts, be it within a longer word.

    Mostly none does, and then no text need be searched alone (`contains_name`).
    """
    folded = normalize_name("\n".join(texts)) if names else ""
    return tuple(name for name in names if name in folded)


def find_name_holders(
    texts: Mapping[UUID, str], names: Sequence[str], successors: Mapping[UUID, UUID]
) -> set[UUID]:
    """Returns the memories whose text has one of the names, and those that replaced them."""
    holder_ids = {memory_id for memory_id, text in texts.items() if contains_name(text, names)}
    added = holder_ids
    while (
        added := {successors[memory_id] for memory_id in added if memory_id in successors}
        - holder_ids
    ):
        holder_ids |= added
    return holder_ids
