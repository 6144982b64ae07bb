"""Folding of traditional Chinese characters and Taiwanese computing terms to simplified Chinese.

The tables in `opencc/` come from OpenCC (https://github.com/BYVoid/OpenCC, Apache License 2.0):
`TSCharacters` and `TWVariantsRev` for characters, `TWPhrasesRev` for words. OpenCC itself is not
used: it would bring a compiled library for these two tables.
"""

from __future__ import annotations

import pkgutil
import re


def _read_table(name: str) -> str:
    data = pkgutil.get_data(__package__, f"opencc/{name}.txt")
    assert data is not None
    return data.decode()


_CHARACTER_TABLE = str.maketrans(
    {pair[0]: pair[1] for pair in _read_table("simplified_characters").split()}
)
_MAINLAND_WORDS: dict[str, str] = dict(
    line.split() for line in _read_table("mainland_words").splitlines()
)
_TAIWAN_WORD = re.compile("|".join(sorted(map(re.escape, _MAINLAND_WORDS), key=len, reverse=True)))
_KANA = re.compile("[\u3040-\u30ff]")


def fold_to_simplified(text: str) -> str:
    """`text` in simplified characters; where it was written in others, in mainland words too.

    A word may mean another thing on the mainland, so text that is simplified already keeps its
    words, and Japanese keeps them too.
    """
    folded = text.translate(_CHARACTER_TABLE)
    if folded == text or _KANA.search(text):
        return folded
    return _TAIWAN_WORD.sub(lambda match: _MAINLAND_WORDS[match[0]], folded)
