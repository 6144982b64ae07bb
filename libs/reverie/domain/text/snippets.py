"""Selection of the excerpt of a text that matches a query best."""

from __future__ import annotations

import re
from itertools import islice

_SENTENCE = re.compile(r"[^.!?\n。！？]+[.!?\n。！？]*")
# Every sentence is compared with every word, so both are bounded: a text with more sentences is
# cut into pieces of equal size, and only the first words of a question count.
_MAX_SENTENCES = 400
_MAX_WORDS = 32


def best_snippet(text: str, words: str, size: int = 240) -> str:
    """At most `size` characters, from the sentence with most of `words` on.

    A short text is returned whole. An ellipsis marks omitted text.
    """
    flat = " ".join(text.split())
    if len(flat) <= size:
        return flat
    # A word of one Chinese character is almost everywhere.
    distinctive = (word for word in words.lower().split() if len(word) > 1 + word.isascii())
    query_words = set(islice(dict.fromkeys(distinctive), _MAX_WORDS))
    start = min(_best_start(flat, query_words, size), len(flat) - size)
    cut = flat[start : start + size]
    before, after = start > 0, start + size < len(flat)
    if before and flat[start - 1] != " ":
        cut = cut.split(" ", 1)[-1]
    if after and flat[start + size] != " ":
        cut = cut.rsplit(" ", 1)[0]
    return f"{'… ' if before else ''}{cut.strip()}{' …' if after else ''}"


def _best_start(text: str, query_words: set[str], size: int) -> int:
    """The start of the best sentence, or a place before its first match if that is far inside."""
    spans = [match.span() for match in _SENTENCE.finditer(text)] or [(0, len(text))]
    if len(spans) > _MAX_SENTENCES:
        step = max(size, len(text) // _MAX_SENTENCES)
        spans = [(offset, offset + step) for offset in range(0, len(text), step)]

    def count_matches(span: tuple[int, int]) -> int:
        sentence = text[slice(*span)].lower()
        return sum(word in sentence for word in query_words)

    start, stop = max(spans, key=lambda span: (count_matches(span), -span[0]))
    lower = text[start:stop].lower()
    found = [place for word in query_words if (place := lower.find(word)) >= 0]
    first = min(found, default=0)
    return start + first - size // 3 if first > size // 2 else start
