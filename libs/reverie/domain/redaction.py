"""Taking credentials out of text before it is stored, logged or sent on.

Each becomes a typed placeholder such as `[REDACTED_API_KEY]`. Pure and linear in the text;
redacting what was redacted changes nothing. Told apart by form (`redaction_shapes`,
`redaction_patterns`), by the
names they are given (`redaction_assignments`, `redaction_values`) and by the commands they stand
in (`redaction_commands`), or the calls they are given to (`redaction_calls`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from reverie.domain.known_secrets import VAULT, is_number, without_known
from reverie.domain.redaction_assignments import Judged, assigned
from reverie.domain.redaction_calls import called
from reverie.domain.redaction_commands import commanded
from reverie.domain.redaction_names import WEAK, name_kind
from reverie.domain.redaction_patterns import (
    BESIDE,
    LISTED,
    PASSWORD,
    SECRET,
    Part,
    Span,
    headers,
    private_keys,
    url_passwords,
)
from reverie.domain.redaction_shapes import shaped
from reverie.domain.redaction_values import Form, is_secret

_MAX_ROUNDS = 8
_NAMED = 4
"""The rank of credentials that are told by their names."""
_NEAR = 400
"""Characters around a placeholder that are searched again: more than any expression looks over."""
_AGAIN = (128 * 1024, 64 * 1024, 32 * 1024)
"""Characters that are searched at most in a second round, in a third, and in each after it; where
it would be more, only the lines of the placeholders are, and where it still is, credentials near
each other count as one list."""
_WORD = re.compile("[a-z]{1,12}")
"""By itself no credential: too short for any form, and nothing names it."""
_BETWEEN = "\n\0\n"
"""What keeps apart parts of a text that are searched together: no expression reaches over it."""


@dataclass(frozen=True)
class Redacted:
    """A text without its credentials, how many were taken out, and of which kinds (sorted)."""

    text: str
    count: int
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class RedactedValue:
    """A JSON-like value without its credentials, how many were taken out, and of which kinds."""

    value: Any
    count: int
    kinds: tuple[str, ...]


def redact(text: str) -> Redacted:
    """The text with every credential replaced by `[REDACTED_<KIND>]`.

    Secrets of the vault that are in force (`known_secrets.knowing`) go first.
    """
    text, count = without_known(text)
    kinds = {VAULT} if count else set[str]()
    judged = Judged()
    windows = [(0, len(text))]
    if _WORD.fullmatch(text):
        return Redacted(text, count, tuple(kinds))
    # A placeholder can lay bare what stood beside it: again around each, until nothing is found.
    for done in range(_MAX_ROUNDS):
        spans = _found_in(text, windows, judged)
        if not spans:
            break
        count += len(spans)
        kinds |= {kind for _, _, kind in spans}
        text, windows = _mended(text, spans, _AGAIN[min(done, len(_AGAIN) - 1)])
    return Redacted(text, count + judged.beside, tuple(sorted(kinds)))


def redact_value(value: Any) -> RedactedValue:
    """A value of dicts, lists and scalars with the credentials in its keys and texts replaced.

    A text under a telling key (`{"password": ...}`) is judged by that key; so is the `value`
    beside such a `name`. Keys that become equal are told apart by a number.
    """
    found: list[Redacted] = []
    cleaned = _cleaned(value, None, found)
    kinds = {kind for entry in found for kind in entry.kinds}
    return RedactedValue(cleaned, sum(entry.count for entry in found), tuple(sorted(kinds)))


def _found_in(text: str, windows: list[Part], judged: Judged) -> list[Span]:
    """The credentials in the windows of a text, all of them searched at once: each search has a
    price of its own."""
    if windows == [(0, len(text))]:
        return _found(text, judged)
    return _placed(_found(_joined(text, windows), judged), windows)


def _joined(text: str, windows: list[Part]) -> str:
    return _BETWEEN.join(text[start:stop] for start, stop in windows)


def _placed(found: list[Span], windows: list[Part]) -> list[Span]:
    """What was found in the joined windows of a text, where it stands in the text."""
    spans: list[Span] = []
    place = offset = 0
    for begin, end, kind in found:
        # A list may reach over several windows.
        while begin < end:
            start, stop = windows[place]
            first, last = max(start, begin - offset + start), min(stop, end - offset + start)
            if first < last:
                spans.append((first, last, kind))
            following = offset + stop - start + len(_BETWEEN)
            if end < following:
                break
            offset, place, begin = following, place + 1, max(begin, following)
    return spans


def _found(text: str, judged: Judged) -> list[Span]:
    """The credentials in a text, in order and apart.

    Those that have a name come first: within long lists of them no other is sought, for all of a
    list goes.
    """
    lower = _lower(text)
    named = _merged(_of_rank(_NAMED, assigned(text, lower, judged)))
    lists = _long(named) if len(named) > LISTED else []
    if not lists:
        return _merged(sorted(_ranked(text, lower, named)))
    windows = _outside(lists, len(text))
    rest = _joined(text, windows)
    others = _placed(_merged(sorted(_ranked(rest, _lower(rest), []))), windows)
    listed = _merged(_of_rank(_NAMED, [*named, *lists]))
    judged.beside += len(named) - len(listed)
    return _merged(sorted([*_of_rank(_NAMED, listed), *_of_rank(0, others)]))


def _of_rank(rank: int, spans: Iterable[Span]) -> list[tuple[int, int, int, str]]:
    return sorted((start, end, rank, kind) for start, end, kind in spans)


def _ranked(text: str, lower: str, named: list[Span]) -> Iterator[tuple[int, int, int, str]]:
    """The credentials in a text, each with its rank: the lower, the more its kind tells."""
    finders = (
        private_keys(text),
        shaped(text),
        url_passwords(text),
        headers(text, lower),
        named,
        commanded(text, lower),
        called(text, lower),
    )
    for rank, finder in enumerate(finders):
        for start, end, kind in finder:
            yield start, end, rank, kind


def _long(named: list[Span]) -> list[Span]:
    """The lists among the spans that are long enough to leave what is within unsearched."""
    return [span for span in _packed(named, BESIDE) if span[1] - span[0] > 4 * _NEAR]


def _outside(lists: list[Span], length: int) -> list[Part]:
    """The parts of a text between lists, with as much of the lists as an expression looks over."""
    starts = [0, *(end - _NEAR for _, end, _ in lists)]
    stops = [*(start + _NEAR for start, _, _ in lists), length]
    return list(zip(starts, stops, strict=True))


def _merged(ranked: list[tuple[int, int, int, str]]) -> list[Span]:
    """Sorted spans, those that overlap made one, of the kind that tells most (the lowest rank)."""
    merged: list[Span] = []
    first, last, best, name = 0, -1, 0, ""
    for start, end, rank, kind in ranked:
        if start >= last:
            if last >= 0:
                merged.append((first, last, name))
            first, last, best, name = start, end, rank, kind
        else:
            last = max(last, end)
            best, name = min((best, name), (rank, kind))
    return [*merged, (first, last, name)] if last >= 0 else merged


def _mended(text: str, spans: list[Span], most: int) -> tuple[str, list[Part]]:
    """The text with placeholders for the spans, and the parts of it to be searched again, of no
    more than `most` characters."""
    beside = BESIDE if len(spans) > LISTED else 0
    while True:
        spans = _packed(spans, beside)
        mended, places = _replaced(text, spans)
        for bounds in (_nearby, _line):
            windows = _around(mended, places, bounds)
            if sum(stop - start for start, stop in windows) <= most:
                return mended, windows
        beside = max(BESIDE, beside * 4)


def _packed(spans: list[Span], beside: int) -> list[Span]:
    """The spans, those with fewer characters between them than `beside` as one."""
    packed = spans[:1]
    for start, end, kind in spans[1:]:
        first, last, name = packed[-1]
        if start - last < beside:
            packed[-1] = (first, end, name)
        else:
            packed.append((start, end, kind))
    return packed


def _replaced(text: str, spans: list[Span]) -> tuple[str, list[Part]]:
    """The text with placeholders for the spans, and where they stand in it."""
    parts: list[str] = []
    places: list[Part] = []
    position = length = 0
    for start, end, kind in spans:
        placeholder = _placeholder(kind)
        parts += (text[position:start], placeholder)
        begin = length + start - position
        length = begin + len(placeholder)
        places.append((begin, length))
        position = end
    return "".join([*parts, text[position:]]), places


def _around(
    text: str, places: list[Part], bounds: Callable[[str, int, int], tuple[int, int]]
) -> list[Part]:
    """The parts of the text around the places, those that touch as one."""
    windows: list[Part] = []
    for place in places:
        start, stop = bounds(text, *place)
        if windows and start <= windows[-1][1]:
            windows[-1] = (windows[-1][0], stop)
        else:
            windows.append((start, stop))
    return windows


def _nearby(text: str, begin: int, end: int) -> tuple[int, int]:
    """What stands near a place, cut before it at a blank."""
    return _blank_before(text, begin - _NEAR), min(len(text), end + _NEAR)


def _line(text: str, begin: int, end: int) -> tuple[int, int]:
    """The line of a place, no more of it than what stands near."""
    start, stop = _nearby(text, begin, end)
    after = text.find("\n", end, stop)
    return max(start, text.rfind("\n", start, begin) + 1), stop if after < 0 else after


def _blank_before(text: str, position: int) -> int:
    if position <= 0:
        return 0
    least = max(0, position - _NEAR)
    return max(text.rfind(" ", least, position), text.rfind("\n", least, position), least)


def _placeholder(kind: str) -> str:
    return f"[REDACTED_{kind}]"


def _lower(text: str) -> str:
    """The text in lower case, of the same length: one letter alone would become two."""
    return text.replace("İ", "ı").lower()


def _cleaned(value: Any, key: str | None, found: list[Redacted]) -> Any:
    if isinstance(value, str):
        return _cleaned_text(value, key, found)
    if isinstance(value, dict):
        return _cleaned_dict(value, key, found)
    if isinstance(value, list | tuple):
        return type(value)(_cleaned(entry, key, found) for entry in value)
    if is_number(value):
        return _cleaned_number(value, key, found)
    return value


def _cleaned_text(text: str, key: str | None, found: list[Redacted]) -> str:
    result = redact(text)
    kind = name_kind(key) if key is not None else None
    if kind and not result.count and is_secret(kind, text, Form.QUOTED):
        kind = SECRET if kind == WEAK else kind
        result = Redacted(_placeholder(kind), 1, (kind,))
    found.append(result)
    return result.text


def _cleaned_number(number: float, key: str | None, found: list[Redacted]) -> Any:
    """A number under a password's name is a secret if it is long enough to be a PIN."""
    text, count = without_known(str(number))
    if count:
        found.append(Redacted(text, count, (VAULT,)))
        return text
    if key is None or not isinstance(number, int) or name_kind(key) != PASSWORD or number < 1000:
        return number
    found.append(Redacted(_placeholder(PASSWORD), 1, (PASSWORD,)))
    return found[-1].text


def _cleaned_dict(
    value: dict[Any, Any], outer: str | None, found: list[Redacted]
) -> dict[Any, Any]:
    named = value.get("name", value.get("key"))
    out: dict[Any, Any] = {}
    for key, inner in value.items():
        clean = _cleaned_text(key, None, found) if isinstance(key, str) else key
        telling = key if isinstance(key, str) else outer
        if key == "value":
            telling = named if isinstance(named, str) else outer
        out[_free(clean, out)] = _cleaned(inner, telling, found)
    return out


def _free(key: Any, taken: dict[Any, Any]) -> Any:
    number, free = 2, key
    while free in taken:
        free, number = f"{key} ({number})", number + 1
    return free
