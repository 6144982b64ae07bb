"""Finds the credentials in a text and replaces each by a typed placeholder.

The time is linear in the text. Redacting twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from reverie.domain.redaction.arguments import ARGUMENT_LITERALS, find_argument_secrets
from reverie.domain.redaction.assignments import (
    ASSIGNMENT_LITERALS,
    AssignmentVerdicts,
    find_assigned_secrets,
)
from reverie.domain.redaction.known_formats import (
    HEADER_LITERALS,
    TOKEN_LITERALS,
    find_header_credentials,
    find_known_tokens,
    find_private_keys,
    find_url_passwords,
)
from reverie.domain.redaction.matching import (
    LIST_GAP,
    LIST_THRESHOLD,
    LiteralFinder,
    LiteralStarts,
    SecretSpan,
    TextRange,
    format_placeholder,
)

_LITERALS = LiteralFinder(
    ASSIGNMENT_LITERALS | ARGUMENT_LITERALS | TOKEN_LITERALS | HEADER_LITERALS
)
"""Finds the literals, in lower case, without which no rule but those of prefixes can match."""
_MAX_ROUNDS = 8
_NAMED_RANK = 4
"""Rank of credentials that are recognised by their names. A lower rank wins an overlap."""
_CONTEXT_CHARS = 400
"""Characters around a placeholder that are searched again: more than any expression spans."""
_RESCAN_LIMITS = (128 * 1024, 64 * 1024, 32 * 1024)
"""Characters that the second, the third and each later round may search. If that is too little for
the context of all placeholders, only their lines are searched. If it still is, credentials near
each other become one list."""
_SHORT_WORD = re.compile("[a-z]{1,12}")
"""A text that is no credential: too short for any format, and without a name."""
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_FULL_WIDTH_BYTES = (b"\xef\xbc", b"\xef\xbd")
"""The beginnings of all full-width characters in UTF-8: a fast test of whether there are any."""
_FULL_WIDTH = {code + 0xFEE0: code for code in range(0x21, 0x7F)}
"""Full-width letters and marks, which are searched as their ASCII counterparts."""
_WINDOW_SEPARATOR = "\n\0\n"
"""Separates parts of a text that are searched together: no expression spans it."""


def redact_credentials(text: str) -> tuple[str, int, set[str]]:
    """Redacts a text; returns it with the number and the kinds of its credentials."""
    if _SHORT_WORD.fullmatch(text):
        return text, 0, set()
    if not text.isascii() and any(chr(code) in text for code in _INVISIBLE):
        # What is invisible must not hide a credential. It stays in texts without one.
        visible, count, kinds = _redact_visible(text.translate(_INVISIBLE))
        return (visible, count, kinds) if count else (text, count, kinds)
    return _redact_visible(text)


def _redact_visible(text: str) -> tuple[str, int, set[str]]:
    count, kinds = 0, set[str]()
    verdicts = AssignmentVerdicts()
    windows = [(0, len(text))]
    # A placeholder can expose a credential next to it, so the text around each is searched again.
    for completed_rounds in range(_MAX_ROUNDS):
        if windows == [(0, len(text))]:
            spans = _find_credentials(text, verdicts)
        else:
            # One search for all windows costs less than many.
            found = _find_credentials(_join_windows(text, windows), verdicts)
            spans = _to_text_spans(found, windows)
        if not spans:
            break
        count += len(spans)
        kinds |= {kind for _, _, kind in spans}
        text, windows = _redact_and_list_windows(
            text, spans, _RESCAN_LIMITS[min(completed_rounds, len(_RESCAN_LIMITS) - 1)]
        )
    return text, count + verdicts.skipped_in_lists, kinds


def _join_windows(text: str, windows: list[TextRange]) -> str:
    return _WINDOW_SEPARATOR.join(text[start:stop] for start, stop in windows)


def _to_text_spans(found: list[SecretSpan], windows: list[TextRange]) -> list[SecretSpan]:
    """Maps spans of the joined windows to spans of the text."""
    spans: list[SecretSpan] = []
    index = offset = 0
    for begin, end, kind in found:
        # A list may reach over several windows.
        while begin < end:
            start, stop = windows[index]
            first, last = max(start, begin - offset + start), min(stop, end - offset + start)
            if first < last:
                spans.append((first, last, kind))
            next_offset = offset + stop - start + len(_WINDOW_SEPARATOR)
            if end < next_offset:
                break
            offset, index, begin = next_offset, index + 1, max(begin, next_offset)
    return spans


def _find_credentials(text: str, verdicts: AssignmentVerdicts) -> list[SecretSpan]:
    """The credentials in a text, in order and without overlaps.

    Credentials with a name are found first. Long lists of them are redacted as a whole, so the
    other searches leave them out.
    """
    if not text.isascii():
        encoded = text.encode(errors="replace")
        if any(start in encoded for start in _FULL_WIDTH_BYTES):
            text = text.translate(_FULL_WIDTH)
    lower = _lower_same_length(text)
    starts = _LITERALS.find(lower)
    named_spans = _merge_overlaps(
        _add_rank(_NAMED_RANK, find_assigned_secrets(text, lower, starts, verdicts))
    )
    packed = _pack_lists(named_spans, LIST_GAP) if len(named_spans) > LIST_THRESHOLD else []
    lists = [span for span in packed if span[1] - span[0] > 4 * _CONTEXT_CHARS]
    if not lists:
        return _merge_overlaps(sorted(_find_ranked_spans(text, lower, starts, named_spans)))
    # The parts between lists, with as much of a list as an expression may span.
    window_starts = [0, *(end - _CONTEXT_CHARS for _, end, _ in lists)]
    window_stops = [*(start + _CONTEXT_CHARS for start, _, _ in lists), len(text)]
    windows = list(zip(window_starts, window_stops, strict=True))
    rest = _join_windows(text, windows)
    lower = _lower_same_length(rest)
    ranked = sorted(_find_ranked_spans(rest, lower, _LITERALS.find(lower), []))
    other_spans = _to_text_spans(_merge_overlaps(ranked), windows)
    listed_spans = _merge_overlaps(_add_rank(_NAMED_RANK, [*named_spans, *lists]))
    verdicts.skipped_in_lists += len(named_spans) - len(listed_spans)
    return _merge_overlaps(
        sorted([*_add_rank(_NAMED_RANK, listed_spans), *_add_rank(0, other_spans)])
    )


def _add_rank(rank: int, spans: Iterable[SecretSpan]) -> list[tuple[int, int, int, str]]:
    return sorted((start, end, rank, kind) for start, end, kind in spans)


def _find_ranked_spans(
    text: str, lower: str, starts: LiteralStarts, named_spans: list[SecretSpan]
) -> Iterator[tuple[int, int, int, str]]:
    """The credentials in a text with their ranks: the lower, the more specific their kind."""
    finders = (
        find_private_keys(text),
        find_known_tokens(text, starts),
        find_url_passwords(text),
        find_header_credentials(text, lower, starts),
        named_spans,
        find_argument_secrets(text, lower, starts),
    )
    for rank, finder in enumerate(finders):
        for start, end, kind in finder:
            yield start, end, rank, kind


def _merge_overlaps(ranked: list[tuple[int, int, int, str]]) -> list[SecretSpan]:
    """Sorted spans with overlapping ones merged; a merged span has the kind of the lowest rank."""
    merged: list[SecretSpan] = []
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


def _redact_and_list_windows(
    text: str, spans: list[SecretSpan], limit: int
) -> tuple[str, list[TextRange]]:
    """The text with placeholders for the spans, and the windows of it to search again.

    The windows have at most `limit` characters together.
    """
    max_gap = LIST_GAP if len(spans) > LIST_THRESHOLD else 0
    while True:
        spans = _pack_lists(spans, max_gap)
        redacted, placeholder_ranges = _insert_placeholders(text, spans)
        for find_bounds in (_context_bounds, _line_bounds):
            windows = _windows_around(redacted, placeholder_ranges, find_bounds)
            if sum(stop - start for start, stop in windows) <= limit:
                return redacted, windows
        max_gap = max(LIST_GAP, max_gap * 4)


def _pack_lists(spans: list[SecretSpan], max_gap: int) -> list[SecretSpan]:
    """The spans; neighbours with fewer than `max_gap` characters between them become one."""
    packed = spans[:1]
    for start, end, kind in spans[1:]:
        first, last, name = packed[-1]
        if start - last < max_gap:
            packed[-1] = (first, end, name)
        else:
            packed.append((start, end, kind))
    return packed


def _insert_placeholders(text: str, spans: list[SecretSpan]) -> tuple[str, list[TextRange]]:
    """The text with placeholders for the spans, and the ranges of the placeholders."""
    parts: list[str] = []
    placeholder_ranges: list[TextRange] = []
    position = length = 0
    for start, end, kind in spans:
        placeholder = format_placeholder(kind)
        parts += (text[position:start], placeholder)
        begin = length + start - position
        length = begin + len(placeholder)
        placeholder_ranges.append((begin, length))
        position = end
    return "".join([*parts, text[position:]]), placeholder_ranges


def _windows_around(
    text: str, ranges: list[TextRange], find_bounds: Callable[[str, int, int], tuple[int, int]]
) -> list[TextRange]:
    """The parts of the text around the ranges; parts that touch become one."""
    windows: list[TextRange] = []
    for text_range in ranges:
        start, stop = find_bounds(text, *text_range)
        if windows and start <= windows[-1][1]:
            windows[-1] = (windows[-1][0], stop)
        else:
            windows.append((start, stop))
    return windows


def _context_bounds(text: str, begin: int, end: int) -> tuple[int, int]:
    """The context of a range. It begins at a blank."""
    start = max(0, begin - _CONTEXT_CHARS)
    lowest = max(0, start - _CONTEXT_CHARS)
    if start > 0:
        start = max(text.rfind(" ", lowest, start), text.rfind("\n", lowest, start), lowest)
    return start, min(len(text), end + _CONTEXT_CHARS)


def _line_bounds(text: str, begin: int, end: int) -> tuple[int, int]:
    """Returns the line of a range, within the context of the range."""
    start, stop = _context_bounds(text, begin, end)
    after = text.find("\n", end, stop)
    return max(start, text.rfind("\n", start, begin) + 1), stop if after < 0 else after


def _lower_same_length(text: str) -> str:
    """The text in lower case, of the same length: only `İ` would become two characters."""
    return text.replace("İ", "ı").lower()
