"""Searches for spans of text: kinds of credentials, lists of them, and parts of a text to search.

Every search takes linear time. In a text with very many matches, which may be made to be slow,
values are no longer judged one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

SecretSpan = tuple[int, int, str]
"""Start and end of a credential in the text, and its kind."""
TextRange = tuple[int, int]
"""Start and end of a part of a text."""

API_KEY = "API_KEY"
AWS_KEY = "AWS_KEY"
BASIC_AUTH = "BASIC_AUTH"
JWT = "JWT"
PASSWORD = "PASSWORD"  # noqa: S105 (these are names of kinds)
PRIVATE_KEY = "PRIVATE_KEY"
SECRET = "SECRET"  # noqa: S105
TOKEN = "TOKEN"  # noqa: S105
URL_PASSWORD = "URL_PASSWORD"  # noqa: S105
WEBHOOK = "WEBHOOK"

MAX_JUDGED = 1_000
"""Values of a kind that are judged one by one in a text. Beyond them whatever stands in such a
place is taken for a secret: a text of that many is made to be slow."""
LIST_THRESHOLD, LIST_GAP = 2048, 128
"""Credentials in a text from which they are a list, and characters between two of a list, which
go with them."""
PLACEHOLDER_PREFIX = "[REDACTED"
"""What placeholders begin with."""

ValueCheck = Callable[[str], bool]
MatchJudge = Callable[[re.Match[str]], SecretSpan | None]

_LIST_STEP, _LIST_LOOKAHEAD = 64, 2048
"""Characters from one credential of a list to where another is sought, and how far."""


def find_spans(
    pattern: re.Pattern[str], text: str, ranges: Iterable[TextRange], judge: MatchJudge
) -> Iterator[SecretSpan]:
    """The credentials among the matches in parts of a text.

    Past the first few thousand they are a list: what stands between two near each other is taken
    with them, and is not searched.
    """
    count = 0
    for position, stop in ranges:
        list_end = -LIST_GAP
        while match := pattern.search(text, position, stop):
            position, span, count = match.end(), judge(match), count + 1
            if not span:
                continue
            start, end, kind = span
            if count > LIST_THRESHOLD:
                start = list_end if start - list_end < LIST_GAP else start
                list_end = end = _end_of_list(pattern, text, end, stop, judge)
                position = max(position, end)
            yield start, end, kind


def _end_of_list(
    pattern: re.Pattern[str], text: str, end: int, stop: int, judge: MatchJudge
) -> int:
    """Where a list ends, each of which begins near the end of one before it."""
    while match := pattern.search(text, end + _LIST_STEP, min(stop, end + _LIST_LOOKAHEAD)):
        span = judge(match) if match.start() < end + LIST_GAP else None
        if not span or span[0] - end >= LIST_GAP:
            break
        end = span[1]
    return end


def memoize_check(check: ValueCheck) -> ValueCheck:
    """The check, made of each text once; of very many, it holds of any other."""
    cache: dict[str, bool] = {}

    def holds(text: str) -> bool:
        result = cache.get(text)
        if result is None:
            result = len(cache) >= MAX_JUDGED or cache.setdefault(text, check(text))
        return result

    return holds


def present_letters(text: str, letters: Iterable[str]) -> frozenset[str]:
    """Those of the letters that are in the text: literals with others need not be sought."""
    return frozenset(letter for letter in letters if letter in text)


_CONTEXT_CHARS, _MAX_RANGES = 1024, 256


def ranges_around(literal: str, text: str) -> Iterator[TextRange]:
    """The parts of a text around a literal, farther than an expression looks from it.

    They are apart; where there are many, the last is all of the rest.
    """
    begin, count = text.find(literal), 0
    while begin >= 0:
        last, following = begin, begin
        while 0 <= following - last < 2 * _CONTEXT_CHARS and count < _MAX_RANGES:
            last = text.rfind(literal, following, following + _CONTEXT_CHARS)
            following = text.find(literal, last + 1)
        count += 1
        yield (
            max(0, begin - _CONTEXT_CHARS),
            last + _CONTEXT_CHARS if count < _MAX_RANGES else len(text),
        )
        begin = following if count < _MAX_RANGES else -1
