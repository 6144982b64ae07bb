"""The part of a text that answers a question best, for a list of hits. Pure."""

from __future__ import annotations

import re
from itertools import islice

_SENTENCE = re.compile(r"[^.!?\n。！？]+[.!?\n。！？]*")
# Every sentence is compared with every word, so both are bounded: a text of more sentences than
# this is looked at in pieces of one size, a question of more words by its first ones.
_MOST_SENTENCES = 400
_MOST_WORDS = 32


def snippet(text: str, words: str, size: int = 240) -> str:
    """At most `size` characters from the sentence on that holds most of `words`.

    A text that is short enough comes whole; what is left out is shown by an ellipsis.
    """
    flat = " ".join(text.split())
    if len(flat) <= size:
        return flat
    start = min(_best(flat, _wanted(words), size), len(flat) - size)
    cut = flat[start : start + size]
    before, after = start > 0, start + size < len(flat)
    if before and flat[start - 1] != " ":
        cut = _after_space(cut)
    if after and flat[start + size] != " ":
        cut = _before_space(cut)
    return f"{'… ' if before else ''}{cut.strip()}{' …' if after else ''}"


def _wanted(words: str) -> set[str]:
    # Words of one Chinese character stand nearly everywhere.
    telling = (word for word in words.lower().split() if len(word) > 1 + word.isascii())
    return set(islice(dict.fromkeys(telling), _MOST_WORDS))


def _best(text: str, wanted: set[str], size: int) -> int:
    """Where to begin: at the best sentence, or before its first hit where that is far inside."""
    spans = [match.span() for match in _SENTENCE.finditer(text)] or [(0, len(text))]
    if len(spans) > _MOST_SENTENCES:
        step = max(size, len(text) // _MOST_SENTENCES)
        spans = [(at, at + step) for at in range(0, len(text), step)]
    start, stop = max(spans, key=lambda span: (_hits(text[slice(*span)], wanted), -span[0]))
    lower = text[start:stop].lower()
    found = [place for word in wanted if (place := lower.find(word)) >= 0]
    first = min(found, default=0)
    return start + first - size // 3 if first > size // 2 else start


def _hits(sentence: str, wanted: set[str]) -> int:
    lower = sentence.lower()
    return sum(word in lower for word in wanted)


def _after_space(text: str) -> str:
    _, space, tail = text.partition(" ")
    return tail if space else text


def _before_space(text: str) -> str:
    head, space, _ = text.rpartition(" ")
    return head if space else text
