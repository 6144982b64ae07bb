"""How random a text looks: generated keys differ from words and from names in programs."""

from __future__ import annotations

import re

_CHAR_CLASS_RUN = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_HEX = re.compile(r"[0-9a-f]{16,}|[0-9A-F]{16,}")
_DIGIT = re.compile("[0-9]")
_SEGMENT = re.compile(r"[A-Za-z0-9]+")


def looks_random(text: str) -> bool:
    """Whether letters and digits mix as they do in generated keys, and not as in names.

    Counts the changes between lower case, upper case and digits: a base64 key changes at more
    than half of its characters, a camelCase name at about a quarter.
    """
    plain = "".join(_SEGMENT.findall(text))
    if len(plain) < 8:
        return False
    digits = len(_DIGIT.findall(plain))
    if _HEX.fullmatch(plain):
        return 0 < digits < len(plain)
    changes = len(_CHAR_CLASS_RUN.findall(plain)) / len(plain)
    return changes >= (0.25 if digits >= 2 else 0.36)


def mixes_cases(text: str) -> bool:
    """Whether a text is random and has letters of both cases and three digits, as no digest has."""
    is_mixed = text.lower() != text and text.upper() != text and len(_DIGIT.findall(text)) > 2
    return is_mixed and looks_random(text)


# Each letter, then those that follow it in words of English and of names in programs.
_LETTER_FOLLOWERS = (
    "abcdfgiklmnprstuvwxy baceijlorsuy cacefhiklorstuy dabcdefilmnorstu "
    "eabcdefgilmnopqrstuvwxy faefilnorstuy gaeghilmnorstu haeilmorstu "
    "iabcdefgklmnoprstvxz je keils lacdeilopstuvy mabeilmopstuy nabcdefghiklmnoprstuvy "
    "oabcdefgiklmnoprstuvwx padehiloprstuy qu rabcdefgiklmnoprstuvwy sacefhiklmnopqstuwy "
    "tacdefhilmoprstuwy uabcdefgilmnoprst vaeio waehinors xceipt yeimnpst zaei "
)
_COMMON_BIGRAMS = frozenset(
    part[0] + second for part in _LETTER_FOLLOWERS.split() for second in part[1:]
)
_LETTER_RUN = re.compile(r"[a-z]{3,}")


def is_unpronounceable(text: str) -> bool:
    """Returns whether at least a quarter of the letter pairs occur in no common word.

    This finds nine of ten random runs of ten letters, and one word in a thousand.
    """
    runs = _LETTER_RUN.findall(text[:256].lower())
    pairs = [run[offset : offset + 2] for run in runs for offset in range(len(run) - 1)]
    rare = sum(pair not in _COMMON_BIGRAMS for pair in pairs)
    return len(pairs) >= 5 and rare >= 2 and rare * 4 >= len(pairs)


def looks_generated(text: str) -> bool:
    """Whether a text is random or contains a piece too long to be a word of a name."""
    return looks_random(text) or any(
        len(piece) >= 24 or (len(piece) >= 16 and has_digit(piece))
        for piece in _SEGMENT.findall(text)
    )


def looks_opaque(text: str) -> bool:
    """Whether a text is random, also if it has letters of one case only."""
    return looks_random(text) or is_unpronounceable(text)


def has_digit(text: str) -> bool:
    """Whether there is an ASCII digit in it."""
    return _DIGIT.search(text) is not None
