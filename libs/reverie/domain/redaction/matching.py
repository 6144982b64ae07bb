"""Common parts of all credential searches: kinds, TOML rules, and linear-time searches.

A text can be made to be slow to search. Two limits keep it linear. After `MAX_JUDGED` distinct
values, every further value counts as a secret. After `LIST_THRESHOLD` credentials, those near each
other count as one list, and the text between them is redacted without a search.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from typing import Any

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
"""Distinct values of a kind that are judged in a text."""
LIST_THRESHOLD, LIST_GAP = 2048, 128
"""Number of credentials from which they count as a list, and the largest gap within a list."""
PLACEHOLDER_PREFIX = "[REDACTED"
"""The beginning of every placeholder."""

ValueCheck = Callable[[str], bool]
MatchJudge = Callable[[re.Match[str]], SecretSpan | None]

_LIST_STEP, _LIST_LOOKAHEAD = 64, 2048
"""Characters after a credential of a list at which the search for the next begins and ends."""


def format_placeholder(kind: str) -> str:
    """What replaces a credential of that kind."""
    return f"{PLACEHOLDER_PREFIX}_{kind}]"


def find_spans(
    pattern: re.Pattern[str], text: str, ranges: Iterable[TextRange], judge: MatchJudge
) -> Iterator[SecretSpan]:
    """Finds the matches in parts of a text that the judge accepts as credentials.

    After `LIST_THRESHOLD` of them, those near each other become one span.
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
    """The end of a list: of its last credential that begins near the end of the one before it."""
    while match := pattern.search(text, end + _LIST_STEP, min(stop, end + _LIST_LOOKAHEAD)):
        span = judge(match) if match.start() < end + LIST_GAP else None
        if not span or span[0] - end >= LIST_GAP:
            break
        end = span[1]
    return end


def memoize_check(check: ValueCheck) -> ValueCheck:
    """The check with a cache. Once the cache is full, every other text passes."""
    cache: dict[str, bool] = {}

    def cached_check(text: str) -> bool:
        result = cache.get(text)
        if result is None:
            result = len(cache) >= MAX_JUDGED or cache.setdefault(text, check(text))
        return result

    return cached_check


LiteralStarts = Mapping[str, Sequence[int]]
"""Where each literal begins in a text; literals that do not occur are missing."""


class LiteralFinder:
    """Finds literals in one pass over a text, so that its time does not grow with their number."""

    def __init__(self, literals: Iterable[str]) -> None:
        # Clients redact nothing: they do without this package.
        from ahocorasick_rs import AhoCorasick, Implementation

        self._literals = tuple(sorted(set(literals)))
        self._automaton = AhoCorasick(
            self._literals, store_patterns=False, implementation=Implementation.DFA
        )

    def find(self, text: str) -> LiteralStarts:
        """The starts of every literal that occurs."""
        starts: dict[str, list[int]] = {}
        if not text.isascii():
            # The automaton refuses halves of surrogate pairs; each becomes one question mark.
            text = text.encode(errors="replace").decode()
        for index, start, _ in self._automaton.find_matches_as_indexes(text, overlapping=True):
            starts.setdefault(self._literals[index], []).append(start)
        return starts


_CONTEXT_CHARS = 1024


def ranges_around(literals: Iterable[str], starts: LiteralStarts) -> Iterator[TextRange]:
    """The parts of a text around the literals, wider than any expression that needs one of them.

    They do not overlap. The last one may end after the text.
    """
    places = [starts[literal] for literal in literals if literal in starts]
    if not places:
        return
    all_starts = places[0] if len(places) == 1 else sorted(chain.from_iterable(places))
    first = last = all_starts[0]
    for start in all_starts:
        if start - last >= 2 * _CONTEXT_CHARS:
            yield max(0, first - _CONTEXT_CHARS), last + _CONTEXT_CHARS
            first = start
        last = start
    yield max(0, first - _CONTEXT_CHARS), last + _CONTEXT_CHARS


@dataclass(frozen=True)
class RedactionRule:
    """One rule, in the form of gitleaks' rules; the TOML files describe their differences.

    It is skipped in a text without any of `requires`. A rule with `min_run` searches the runs of at
    least so many letters, digits and `_-.`.
    """

    id: str
    description: str
    regex: str
    kind: str = PASSWORD
    prefixes: Sequence[str] = ()
    keywords: Sequence[str] = ()
    check: str | None = None
    form: str = "env"
    requires: Sequence[str] = ()
    min_run: int = 0


def load_rules(name: str) -> tuple[RedactionRule, ...]:
    """The rules of a file, in its order."""
    return tuple(RedactionRule(**entry) for entry in _load_file(name)["rules"])


def load_allowlist(name: str) -> str:
    """An expression for what is no credential in spite of the rules of the file."""
    return "|".join(_load_file(name)["allowlist"]["regexes"])


def _load_file(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / f"rules/{name}.toml").read_text("utf-8"))
