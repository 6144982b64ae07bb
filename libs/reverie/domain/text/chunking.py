"""Splitting of a text into overlapping chunks at paragraph, sentence or word boundaries."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from typing import NamedTuple

_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n")


@dataclass(frozen=True)
class Chunk:
    """Offsets into the text, in characters: `text[start:stop]`."""

    start: int
    stop: int


class _BoundaryRank(IntEnum):
    WORD = 0
    SENTENCE = 1
    PARAGRAPH = 2


class _Atom(NamedTuple):
    """The smallest piece of a text: offsets, tokens, and the quality of a cut at its end."""

    start: int
    stop: int
    tokens: int
    rank: _BoundaryRank


def chunk_text(
    text: str, count_tokens: Callable[[str], int], size: int = 400, overlap: int = 80
) -> list[Chunk]:
    """Chunks in order that together cover the text, each of at most `size` tokens.

    Neighbours share at most `overlap` tokens. A chunk ends at a paragraph, else a sentence,
    else a word, taking the last such place in its second half. A single character that
    counts more than `size` tokens stays one chunk.
    """
    if not text:
        return []
    if count_tokens(text) <= size:
        return [Chunk(0, len(text))]
    atoms: list[_Atom] = []
    for start, stop in _split_spans(_PARAGRAPH, text, 0, len(text)):
        for low, high in _split_spans(_SENTENCE, text, start, stop):
            rank = _BoundaryRank.PARAGRAPH if high == stop else _BoundaryRank.SENTENCE
            atoms += _halve(text, count_tokens, max(1, size // 4), low, high, rank)
    token_sums = [0, *accumulate(atom.tokens for atom in atoms)]

    def find_fitting_end(first: int) -> int:
        """The end of the longest run of atoms from `first` within `size` tokens, at least one."""
        last = max(first + 1, bisect_right(token_sums, token_sums[first] + size) - 1)
        # Counts of parts need not add up to the count of the whole.
        while (
            last > first + 1
            and count_tokens(text[atoms[first].start : atoms[last - 1].stop]) > size
        ):
            last -= 1
        return last

    chunks: list[Chunk] = []
    first, covered = 0, 0
    while covered < len(atoms):
        last = find_fitting_end(first)
        if last <= covered:
            # The shared beginning left no room for anything new.
            first = covered
            last = find_fitting_end(first)
        if last < len(atoms):
            half = token_sums[first] + size // 2
            ends = [i for i in range(covered + 1, last + 1) if token_sums[i] >= half or i == last]
            last = max(ends, key=lambda i: (atoms[i - 1].rank, i))
        chunks.append(Chunk(atoms[first].start, atoms[last - 1].stop))
        covered = last
        overlap_start = bisect_right(token_sums, token_sums[last] - min(overlap, size // 2) - 1)
        first = max(first + 1, min(overlap_start, last))
    return chunks


def _split_spans(
    boundary: re.Pattern[str], text: str, start: int, stop: int
) -> Iterator[tuple[int, int]]:
    """The spans between boundaries; a boundary belongs to the piece before it."""
    for match in boundary.finditer(text, start, stop):
        if match.end() > start:
            yield start, match.end()
            start = match.end()
    if start < stop:
        yield start, stop


def _halve(
    text: str,
    count_tokens: Callable[[str], int],
    limit: int,
    start: int,
    stop: int,
    rank: _BoundaryRank,
) -> Iterator[_Atom]:
    tokens = count_tokens(text[start:stop])
    if tokens <= limit or stop - start == 1:
        yield _Atom(start, stop, tokens, rank)
        return
    # After the last space before the middle, else after the next one, else the middle.
    half = (start + stop) // 2
    if (space := text.rfind(" ", start, half)) > start:
        split_at = space + 1
    else:
        after = text.find(" ", half, stop - 1)
        split_at = after + 1 if after > start else half
    yield from _halve(text, count_tokens, limit, start, split_at, _BoundaryRank.WORD)
    yield from _halve(text, count_tokens, limit, split_at, stop, rank)
