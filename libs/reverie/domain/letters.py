"""Which letters texts are written in, and so whether a model reads them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

CJK = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese, Japanese and Korean letters, as a class of a regular expression has them."""

LEAST = 10
"""Texts that must be written so before it is said of many: a few prove nothing."""

WORD_SIGNS = 2
"""Signs that a Chinese, Japanese or Korean word has, about."""

_IS_CJK = re.compile(rf"[{CJK}]")
_OTHERS = re.compile(rf"(?:[^\W_{CJK}])+")


def is_east_asian(text: str) -> bool:
    """Whether more of its words are Chinese, Japanese or Korean than are not."""
    if not _IS_CJK.search(text):
        return False
    signs, others = len(_IS_CJK.findall(text)), len(_OTHERS.findall(text))
    return signs > WORD_SIGNS * others


def are_east_asian(texts: Iterable[str]) -> bool:
    """Whether at least half of the texts are, and `LEAST` of them."""
    told = [is_east_asian(text) for text in texts]
    return sum(told) >= LEAST and 2 * sum(told) >= len(told)
