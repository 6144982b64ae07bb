"""Shortens a long text to the sentences that match a query best, as it is shown for a hit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

SNIPPET_TOKENS = 400
"""The tokens of a snippet at most."""
_TOKENS_PER_WORD, _CHARS_PER_TOKEN = 1.5, 4.5
"""Of words in ASCII, at least; each other character is a token of its own. Models need fewer."""
_WORD = re.compile(r"[A-Za-z0-9]+")
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|\Z)|[。！？]|\Z)", re.DOTALL)
# Every sentence is compared with every word, so both are bounded: a text with more sentences is
# cut into pieces of equal size, and only the first words of a question count.
_MAX_SENTENCES = 400
_MAX_WORDS = 32

Span = tuple[int, int]


def snippet_size(text: str) -> int:
    """The characters of a text that are at most about `SNIPPET_TOKENS`."""
    words = [len(word) for word in _WORD.findall(text)]
    others = len(text) - sum(words) - text.count(" ")
    estimate = others + sum(max(_TOKENS_PER_WORD, size / _CHARS_PER_TOKEN) for size in words)
    return int(SNIPPET_TOKENS * len(text) / max(estimate, 1))


def best_snippet(text: str, words: str, size: int | None = None) -> str:
    """The sentence with most of `words`, with as many whole ones around it as fit in `size`
    characters (None: `SNIPPET_TOKENS`).

    A short text is returned whole, and a longer sentence is cut at a word. An ellipsis marks
    omitted text.
    """
    flat = " ".join(text.split())
    size = snippet_size(flat) if size is None else size
    if len(flat) <= size:
        return flat
    # A word of one Chinese character is almost everywhere.
    distinctive = (word for word in words.lower().split() if len(word) > 1 + word.isascii())
    query_words = set(islice(dict.fromkeys(distinctive), _MAX_WORDS))
    spans = _find_spans(flat, size)
    best = _find_best(flat, spans, query_words)
    if spans[best][1] - spans[best][0] > size:
        return _cut_within(flat, spans[best], query_words, size)
    start, stop = _extend(spans, best, size)
    if stop - start < size // 2:
        # Its neighbours are too long to be shown whole.
        return _cut_within(flat, (start, stop), query_words, size)
    after = " …" if stop < len(flat) else ""
    return f"{'… ' if start else ''}{flat[start:stop].strip()}{after}"


def _find_spans(text: str, size: int) -> list[Span]:
    spans = [match.span() for match in _SENTENCE.finditer(text)]
    if len(spans) <= _MAX_SENTENCES:
        return spans
    step = max(size + 1, len(text) // _MAX_SENTENCES)
    return [(offset, min(offset + step, len(text))) for offset in range(0, len(text), step)]


def _find_best(text: str, spans: Sequence[Span], query_words: set[str]) -> int:
    """The first of the sentences that have most of the words."""

    def count_matches(index: int) -> int:
        sentence = text[slice(*spans[index])].lower()
        return sum(word in sentence for word in query_words)

    return max(range(len(spans)), key=lambda index: (count_matches(index), -index))


def _extend(spans: Sequence[Span], best: int, size: int) -> Span:
    """The best sentence with those after and before it, in turn, as long as they fit."""
    first = last = best
    grows = True
    while grows:
        grows = False
        if last + 1 < len(spans) and spans[last + 1][1] - spans[first][0] <= size:
            last, grows = last + 1, True
        if first > 0 and spans[last][1] - spans[first - 1][0] <= size:
            first, grows = first - 1, True
    return spans[first][0], spans[last][1]


def _cut_within(text: str, span: Span, query_words: set[str], size: int) -> str:
    """A part of a long sentence: its beginning, or a place before its first match."""
    start, stop = span
    lower = text[start:stop].lower()
    found = [place for word in query_words if (place := lower.find(word)) >= 0]
    first = min(found, default=0)
    start = min(start + first - size // 3 if first > size // 2 else start, len(text) - size)
    cut = text[start : start + size]
    if start > 0 and text[start - 1] != " " and not cut.startswith(" "):
        cut = cut.split(" ", 1)[-1]
    if start + size < len(text) and text[start + size] != " ":
        cut = cut.rsplit(" ", 1)[0]
    after = " …" if start + size < len(text) else ""
    return f"{'… ' if start > 0 else ''}{cut.strip()}{after}"
