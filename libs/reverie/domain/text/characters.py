"""Sets of words, East Asian script detection and invisible text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from unicodedata import category

CJK = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese, Japanese and Korean letters, as the inside of a character class."""

MIN_EAST_ASIAN_TEXTS = 10
"""Fewest East Asian texts for a verdict on many texts."""

CHARS_PER_CJK_WORD = 2
"""Approximate length of a Chinese, Japanese or Korean word."""

CJK_CHAR = re.compile(rf"[{CJK}]")
_OTHER_WORD = re.compile(rf"(?:[^\W_{CJK}])+")


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def is_east_asian(text: str) -> bool:
    """Whether most words of a text are Chinese, Japanese or Korean."""
    if not CJK_CHAR.search(text):
        return False
    cjk_chars, other_words = len(CJK_CHAR.findall(text)), len(_OTHER_WORD.findall(text))
    return cjk_chars > CHARS_PER_CJK_WORD * other_words


def is_mostly_east_asian(texts: Iterable[str]) -> bool:
    """Whether at least half of the texts are East Asian, and at least `MIN_EAST_ASIAN_TEXTS`."""
    verdicts = [is_east_asian(text) for text in texts]
    return sum(verdicts) >= MIN_EAST_ASIAN_TEXTS and 2 * sum(verdicts) >= len(verdicts)


_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
# Variation selectors only change the appearance of the character before them.
_VARIATION_SELECTOR = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_FILLER_CHARS = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
)


def is_blank(text: str) -> bool:
    """Whether a text has no visible character."""
    return all(
        char in _FILLER_CHARS
        or category(char) in _INVISIBLE_CATEGORIES
        or _VARIATION_SELECTOR.fullmatch(char)
        for char in text
    )
