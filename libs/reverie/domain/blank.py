"""Text that nobody can see: white space, and what Unicode lets renderers leave out. Pure."""

from __future__ import annotations

from unicodedata import category

_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")


def is_blank(text: str) -> bool:
    """Whether no character of a text is seen."""
    return all(_unseen(char) for char in text)


def _unseen(char: str) -> bool:
    # Variation selectors only say how the character before them looks.
    selects = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return selects or char in _FILLERS or category(char) in _UNSEEN
