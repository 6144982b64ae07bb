"""Finds credentials with a known format, such as tokens of a provider with a fixed prefix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_letters, digits

from reverie.domain.redaction.matching import MAX_JUDGED, SecretSpan, ValueCheck, ranges_around
from reverie.domain.redaction.rules import RedactionRule, load_allowlist, load_rules
from reverie.domain.redaction.value_checks import has_digit, looks_generated, looks_random

_ALLOWED = re.compile(load_allowlist("tokens"))
_VerdictCache = dict[tuple[int, str], bool]
"""Cached verdicts by the group of the rule and the text."""
_JUDGED_CHARS = 256
"""Characters of a value that are judged: enough to tell a random one."""


_RULES = load_rules("tokens")
_PREFIX_RULES = [rule for rule in _RULES if rule.prefixes]
_CHECKS: dict[str | None, ValueCheck] = {
    "has_digit": has_digit,
    "looks_random": looks_random,
    "looks_generated": looks_generated,
    None: lambda _: True,
}


def _prefixes_by_letter() -> dict[str, list[tuple[str, RedactionRule]]]:
    """The prefixes without their first letter, by that letter, the longest first."""
    by_letter: dict[str, list[tuple[str, RedactionRule]]] = {}
    for rule in _PREFIX_RULES:
        for prefix in rule.prefixes:
            by_letter.setdefault(prefix[0], []).append((prefix[1:], rule))
    for prefixes in by_letter.values():
        prefixes.sort(key=lambda entry: len(entry[0]), reverse=True)
    return by_letter


def _compile_patterns() -> tuple[re.Pattern[str], re.Pattern[str], list[RedactionRule]]:
    """Two expressions for all prefixes, and the rule of each of their groups.

    The character before a prefix, which is no letter or digit, is part of the match, so that the
    search skips from one such character to the next. The second expression is for what follows a
    written-out `\\n`, as in JSON, where the letter n belongs to the escape.
    """
    branches, rules = [], [_PREFIX_RULES[0]]
    by_letter = _prefixes_by_letter()
    for letter, prefixes in by_letter.items():
        bodies = [f"{re.escape(prefix)}({rule.regex})" for prefix, rule in prefixes]
        rules += [rule for _, rule in prefixes]
        second_letters = "".join(sorted({re.escape(prefix[0]) for prefix, _ in prefixes}))
        branches.append(f"{letter}(?=[{second_letters}])(?:{'|'.join(bodies)})")
    any_format = f"(?=[{''.join(by_letter)}])(?:{'|'.join(branches)})"
    return re.compile(rf"[^A-Za-z0-9]{any_format}"), re.compile(rf"\\[nrt]{any_format}"), rules


_PLAIN_PATTERN, _ESCAPED_PATTERN, _RULE_BY_GROUP = _compile_patterns()
_KEYWORD_RULES = [
    (rule, re.compile(rule.regex), _CHECKS[rule.check]) for rule in _RULES if rule.keywords
]


_MIN_RUN = 15
"""Fewest characters without a blank or mark in any format."""
_MARGIN_BEFORE, _MARGIN_AFTER = 8, 4
"""Characters beside such a run that may belong to the credential or mark its beginning."""
_MAX_RUNS = 2_000


def _build_run_table(marks: str) -> bytes:
    """A translation table: letters, digits and the marks become `a`, all others blanks."""
    is_run_char = (chr(code) in _LETTERS_AND_DIGITS + marks for code in range(256))
    return bytes(ord("a" if in_run else " ") for in_run in is_run_char)


_LETTERS_AND_DIGITS = ascii_letters + digits
_RUN_TABLE, _BASE64_RUN_TABLE = _build_run_table("_-."), _build_run_table("_-.+/,")
_BASE64_PREFIXES = ("ABSK", "whsec_", "FlyV1 ")
"""Prefixes of credentials that contain other marks."""


def _find_runs(text: str) -> list[tuple[int, int]]:
    """The runs that are long enough for a credential. After too many, the rest is one run."""
    table = _BASE64_RUN_TABLE if any(prefix in text for prefix in _BASE64_PREFIXES) else _RUN_TABLE
    marked = text.encode("ascii", "replace").translate(table) + b" "
    min_run, runs, position = b"a" * _MIN_RUN, list[tuple[int, int]](), 0
    while (start := marked.find(min_run, position)) >= 0:
        if len(runs) >= _MAX_RUNS:
            return [*runs, (max(0, start - _MARGIN_BEFORE), len(text))]
        position = marked.find(b" ", start)
        runs.append((max(0, start - _MARGIN_BEFORE), position + _MARGIN_AFTER))
    return runs


def find_known_tokens(text: str) -> Iterator[SecretSpan]:
    """Credentials that match a rule, by the literal that they begin with or contain."""
    end, padded, cache = 0, f" {text}", _VerdictCache()
    for start, stop in _find_runs(text):
        for span in _find_prefixed(padded, _PLAIN_PATTERN, max(start, end), stop, cache):
            end = span[1]
            yield span
    if "\\" in text:
        yield from _find_prefixed(padded, _ESCAPED_PATTERN, 0, len(text), cache)
    for rule, pattern, check in _KEYWORD_RULES:
        for keyword in rule.keywords:
            for start, stop in ranges_around(keyword, text):
                for match in pattern.finditer(text, start, stop):
                    if check(match[1]):
                        yield *match.span(1), rule.kind


def _find_prefixed(
    padded: str, pattern: re.Pattern[str], position: int, stop: int, cache: _VerdictCache
) -> Iterator[SecretSpan]:
    """Credentials with a prefix, in a part of the text; `padded` is the text after one blank."""
    searched_to, margin = -1, 1 if pattern is _PLAIN_PATTERN else 2
    while match := pattern.search(padded, position, stop + 1):
        start, end = match.start() + margin - 1, match.end() - 1
        group = match.lastindex or 0
        if _is_token(group, match[group], cache):
            yield start, end, _RULE_BY_GROUP[group].kind
            position = end
        elif start >= searched_to:
            # A rejected match may contain another one: it is searched once.
            position, searched_to = start + 2, end
        else:
            position = end


def _is_token(group: int, value: str, cache: _VerdictCache) -> bool:
    """Whether the value passes the check of its rule. After very many values, every one does."""
    cache_key = group, value[:_JUDGED_CHARS]
    if cache_key not in cache:
        if len(cache) >= MAX_JUDGED:
            return True
        check = _CHECKS[_RULE_BY_GROUP[group].check]
        cache[cache_key] = not _ALLOWED.fullmatch(cache_key[1]) and check(cache_key[1])
    return cache[cache_key]
