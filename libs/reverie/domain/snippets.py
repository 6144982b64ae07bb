"""The part of a text that answers a question best, for a list of hits. Pure."""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"[^.!?\n。！？]+[.!?\n。！？]*")


def snippet(text: str, words: str, size: int = 240) -> str:
    """About `size` characters around the sentence that holds most of `words`.

    A text that is short enough comes whole; what is left out is shown by an ellipsis.
    """
    flat = " ".join(text.split())
    if len(flat) <= size:
        return flat
    wanted = {word for word in words.lower().split() if len(word) > 2}
    spans = [match.span() for match in _SENTENCE.finditer(flat)] or [(0, len(flat))]
    start = max(spans, key=lambda span: (_hits(flat[slice(*span)], wanted), -span[0]))[0]
    start = min(start, max(0, len(flat) - size))
    cut = flat[start : start + size]
    before = "… " if start > 0 else ""
    after = " …" if start + size < len(flat) else ""
    return f"{before}{_whole_words(cut, bool(after))}{after}"


def _hits(sentence: str, wanted: set[str]) -> int:
    lower = sentence.lower()
    return sum(word in lower for word in wanted)


def _whole_words(text: str, cut: bool) -> str:
    head, space, _ = text.rpartition(" ")
    return head if cut and space else text
