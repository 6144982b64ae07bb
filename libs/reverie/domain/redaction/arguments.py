"""Finds credentials in arguments of commands and calls, in settings, SQL and byte arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from reverie.domain.redaction.matching import (
    MAX_JUDGED,
    PASSWORD,
    SECRET,
    LiteralStarts,
    SecretSpan,
    TextRange,
    find_spans,
    load_rules,
    ranges_around,
)
from reverie.domain.redaction.randomness import (
    has_digit,
    is_unpronounceable,
    looks_generated,
)
from reverie.domain.redaction.secret_names import (
    KEYWORD_PATTERN,
    classify_name,
    classify_name_cached,
    judge_value_cached,
)
from reverie.domain.redaction.value_checks import ValueForm, is_secret

_QUOTED = re.compile(r"[\"']([^\"'\n]{1,256}+)[\"']")
_QUOTED_WITH_DIGIT = re.compile(
    r"[\"'](?!\[REDACTED_)(?=[^\"'\n]{0,256}[0-9])([^\"'\n]{6,256}+)[\"']"
)
_BRACKETS = re.compile(r"\"[^\"\n]{0,256}+\"|'[^'\n]{0,256}+'|[();]")
_TEXT_ARGUMENT = r"(?=[^\"'\n;(]{0,120}+(?>(?:\([^\"'\n;(]{0,60}+){0,3})[\"'])"
"""The rest of a call with a quoted argument, after at most three nested calls."""
_MAX_CALL_CHARS = 240
"""Characters of a call that are searched for its arguments."""

_ARGUMENTS, _CALLS = load_rules("arguments"), load_rules("calls")
_ARGUMENT_RULES = [(rule, re.compile(rule.regex), ValueForm(rule.form)) for rule in _ARGUMENTS]
_CALL_RULES = [(rule, re.compile(rule.regex + _TEXT_ARGUMENT)) for rule in _CALLS]
ARGUMENT_LITERALS = frozenset(
    literal for rule in (*_ARGUMENTS, *_CALLS) for literal in (*rule.keywords, *rule.requires)
)
_BYTE_LIST = re.compile(r"0x[0-9a-f]{1,2}(?>(?:[,\s]{1,24}+0x[0-9a-f]{1,2}){7,512})")
_ARRAY_START = re.compile(
    r"(?<!\w)([a-z_]\w{1,80}+)(?:\[[^\]\n]{0,24}+\])?[ ]?:?=[ ]?(?:new[ ])?(?:[\w\[\]]{1,16}+[ ]?)?"
    r"[{\[(]\s{0,16}\Z",
    re.IGNORECASE,
)
_SQL_INSERT = re.compile(
    r"insert\s{1,4}into\s{1,4}[\w.`\"\[\]]{1,80}+\s{0,4}\(([^()]{1,600}+)\)\s{0,8}values\s{0,8}"
    r"\(([^()]{1,1200}+)\)"
)
_SQL_FIELD = re.compile(r"'(?>(?:[^']|'')*)'|\"[^\"]*+\"|[^,'\"]++")


def find_argument_secrets(text: str, lower: str, starts: LiteralStarts) -> Iterator[SecretSpan]:
    """Credentials in arguments of commands and calls, in settings, prose, SQL and byte arrays.

    `lower` is the text in lower case, of the same length; `starts` are those of its literals.
    """
    for rule, pattern, form in _ARGUMENT_RULES:
        if not starts.keys().isdisjoint(rule.keywords) and (
            not rule.requires or not starts.keys().isdisjoint(rule.requires)
        ):
            ranges = ranges_around(rule.keywords, starts)
            yield from _find_named_values(text, lower, rule.kind, pattern, ranges, form)
    for rule, pattern in _CALL_RULES:
        if not starts.keys().isdisjoint(rule.keywords):
            yield from _find_call_secrets(text, lower, rule.kind, pattern)
    if "0x" in lower:
        yield from _find_byte_arrays(text, lower)
    if "insert" in lower:
        yield from _find_inserted_secrets(text, lower)


def _find_named_values(
    text: str,
    lower: str,
    rule_kind: str,
    pattern: re.Pattern[str],
    ranges: Iterable[TextRange],
    form: ValueForm,
) -> Iterator[SecretSpan]:
    """The secrets among the matches: judged by the group `name`, or else by the rule's kind."""
    cache: dict[tuple[str, str], str | None] = {}
    kinds: dict[str, str | None] = {}
    has_name = "name" in pattern.groupindex

    def build_span(match: re.Match[str]) -> SecretSpan | None:
        start, end = match.span("value")
        if form is ValueForm.SPOKEN:
            end = start + len(text[start:end].rstrip(").]}:,»。，、；"))
        kind = (
            classify_name_cached(text[slice(*match.span("name"))], kinds) if has_name else rule_kind
        )
        found = judge_value_cached(kind, text[start:end], form, cache) if kind else None
        return (start, end, found) if found else None

    return find_spans(pattern, lower, ranges, build_span)


def _find_call_secrets(
    text: str, lower: str, kind: str, pattern: re.Pattern[str]
) -> Iterator[SecretSpan]:
    """The arguments of each call that are secrets, up to the next call of the same pattern."""
    cache: dict[str, list[TextRange]] = {}
    more_spans: list[SecretSpan] = []

    def first(call: re.Match[str]) -> SecretSpan | None:
        start = call.end()
        stop = start + _MAX_CALL_CHARS
        if len(cache) >= MAX_JUDGED:
            nested_call = pattern.search(lower, start, stop)
            return _span_quoted_arguments(text, start, nested_call.end() if nested_call else stop)
        call_text = text[start:stop]
        found = cache.get(call_text)
        if found is None:
            nested_call = pattern.search(lower, start, stop)
            window = call_text[: nested_call.end() - start] if nested_call else call_text
            cache[call_text] = found = _secret_arguments(window, kind)
        more_spans.extend((start + begin, start + end, kind) for begin, end in found[1:])
        return (start + found[0][0], start + found[0][1], kind) if found else None

    yield from find_spans(pattern, lower, [(0, len(lower))], first)
    yield from more_spans


def _span_quoted_arguments(text: str, start: int, stop: int) -> SecretSpan | None:
    """For very many calls: all from the first to the last quoted argument with a digit."""
    end = text.find("\n", start, stop)
    spans = [
        match.span(1)
        for match in _QUOTED_WITH_DIGIT.finditer(text, start, stop if end < 0 else end)
    ]
    return (spans[0][0], spans[-1][1], SECRET) if spans else None


def _secret_arguments(window: str, kind: str) -> list[TextRange]:
    """The secrets among the arguments. The first argument of a login is no password."""
    window = window.partition("\n")[0]
    arguments = [
        match
        for match in _QUOTED.finditer(window, 0, _find_call_end(window))
        if window[match.start() - 1 : match.start()] != "="
    ]
    if kind != PASSWORD:
        return [match.span(1) for match in arguments if _is_key_argument(match[1])]
    starts_with_quoted = arguments and not window[: arguments[0].start()].strip(" @bN[]")
    return [
        match.span(1)
        for match in arguments[1 if starts_with_quoted else 0 :]
        if _is_password_argument(match[1])
    ]


def _find_call_end(window: str) -> int:
    """The end of the call in which the window begins: its closing bracket, or `;`."""
    depth = 0
    for match in _BRACKETS.finditer(window):
        if match[0][0] in "\"'":
            continue
        depth += {"(": 1, ")": -1, ";": -99}[match[0]]
        if depth < 0:
            return match.start()
    return len(window)


_NAME = re.compile(r"[A-Za-z]+(?:[-_][A-Za-z]+)*[-_]v?\d{1,3}|[A-Za-z]+(?:[-_][A-Za-z]+)+\d{0,3}")


def _is_password_argument(value: str) -> bool:
    """Returns whether an argument can be a password: no address, path or host name."""
    is_plain = not any(mark in value for mark in ":;=/. ") and not _NAME.fullmatch(value)
    return len(value) >= 6 and is_plain and is_secret(PASSWORD, value, ValueForm.WRAPPED)


def _is_key_argument(value: str) -> bool:
    """Returns whether an argument can be a key, and not the name of a thing."""
    return (
        len(value) >= 8
        and has_digit(value)
        and is_secret(SECRET, value, ValueForm.QUOTED)
        and (looks_generated(value) or is_unpronounceable(value))
    )


def _find_byte_arrays(text: str, lower: str) -> Iterator[SecretSpan]:
    """Keys that are written as arrays of bytes."""
    kinds: dict[str, str | None] = {}

    def array(match: re.Match[str]) -> SecretSpan | None:
        name_match = _ARRAY_START.search(text, max(0, match.start() - 96), match.start())
        is_credential = (
            name_match
            and classify_name_cached(name_match[1], kinds)
            and len(set(match[0].split(","))) > 6
        )
        return (*match.span(), SECRET) if is_credential else None

    return find_spans(_BYTE_LIST, lower, [(0, len(lower))], array)


def _find_inserted_secrets(text: str, lower: str) -> Iterator[SecretSpan]:
    """Values of the columns that are named as secrets."""
    column_cache: dict[str, list[str | None]] = {}
    value_cache: dict[tuple[str, str], str | None] = {}
    for match in _SQL_INSERT.finditer(lower):
        kinds = _classify_columns(match[1], column_cache)
        if not any(kinds):
            continue
        fields = _SQL_FIELD.finditer(text, *match.span(2))
        filled = (field for field in fields if field[0].strip())
        for kind, field in zip(kinds, filled, strict=False):
            quote_length = field[0][0] in "'\""
            start, end = field.start() + quote_length, field.end() - quote_length
            if kind and (
                found := judge_value_cached(kind, text[start:end], ValueForm.QUOTED, value_cache)
            ):
                yield start, end, found


def _classify_columns(columns: str, cache: dict[str, list[str | None]]) -> list[str | None]:
    """The kind of secret that each column promises; after too many lists, one kind for all."""
    if columns not in cache:
        if len(cache) >= MAX_JUDGED:
            kind = SECRET if KEYWORD_PATTERN.search(columns) else None
            return [kind] * (columns.count(",") + 1)
        cache[columns] = [classify_name(name.strip(' `"[]\n\t')) for name in columns.split(",")]
    return cache[columns]
