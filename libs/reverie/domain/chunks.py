"""Cutting a text into overlapping chunks at the best boundary that fits."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate

_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n")


@dataclass(frozen=True)
class Chunk:
    """Offsets into the text, in characters: `text[start:stop]`."""

    start: int
    stop: int


class _Rank(IntEnum):
    WORD = 0
    SENTENCE = 1
    PARAGRAPH = 2


@dataclass(frozen=True)
class _Atom:
    """The smallest piece handled: its offsets, its tokens, how good a cut its end is."""

    start: int
    stop: int
    tokens: int
    rank: _Rank


def chunk(
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
    atoms = list(_atoms(text, count_tokens, max(1, size // 4)))
    sums = [0, *accumulate(atom.tokens for atom in atoms)]
    return list(_pack(text, count_tokens, atoms, sums, size, min(overlap, size // 2)))


def _pack(
    text: str,
    count_tokens: Callable[[str], int],
    atoms: list[_Atom],
    sums: list[int],
    size: int,
    overlap: int,
) -> Iterator[Chunk]:
    first, done = 0, 0
    while done < len(atoms):
        last = _fit(text, count_tokens, atoms, sums, first, size)
        if last <= done:
            # The shared beginning left no room for anything new.
            first = done
            last = _fit(text, count_tokens, atoms, sums, first, size)
        if last < len(atoms):
            last = _best_cut(atoms, sums, max(first, done), last, sums[first] + size // 2)
        yield Chunk(atoms[first].start, atoms[last - 1].stop)
        done = last
        back = bisect_right(sums, sums[last] - overlap - 1)
        first = max(first + 1, min(back, last))


def _fit(
    text: str,
    count_tokens: Callable[[str], int],
    atoms: list[_Atom],
    sums: list[int],
    first: int,
    size: int,
) -> int:
    """The end of the longest run of atoms from `first` on within `size` tokens, one at least."""
    last = max(first + 1, bisect_right(sums, sums[first] + size) - 1)
    # Counts of parts need not add up to the count of the whole.
    while last > first + 1 and count_tokens(text[atoms[first].start : atoms[last - 1].stop]) > size:
        last -= 1
    return last


def _best_cut(atoms: list[_Atom], sums: list[int], low: int, last: int, least: int) -> int:
    ends = [i for i in range(low + 1, last + 1) if sums[i] >= least or i == last]
    return max(ends, key=lambda i: (atoms[i - 1].rank, i))


def _atoms(text: str, count_tokens: Callable[[str], int], limit: int) -> Iterator[_Atom]:
    for start, stop in _pieces(_PARAGRAPH, text, 0, len(text)):
        for low, high in _pieces(_SENTENCE, text, start, stop):
            rank = _Rank.PARAGRAPH if high == stop else _Rank.SENTENCE
            yield from _halved(text, count_tokens, limit, low, high, rank)


def _pieces(
    boundary: re.Pattern[str], text: str, start: int, stop: int
) -> Iterator[tuple[int, int]]:
    """The spans between boundaries; a boundary belongs to the piece before it."""
    for match in boundary.finditer(text, start, stop):
        if match.end() > start:
            yield start, match.end()
            start = match.end()
    if start < stop:
        yield start, stop


def _halved(
    text: str,
    count_tokens: Callable[[str], int],
    limit: int,
    start: int,
    stop: int,
    rank: _Rank,
) -> Iterator[_Atom]:
    tokens = count_tokens(text[start:stop])
    if tokens <= limit or stop - start == 1:
        yield _Atom(start, stop, tokens, rank)
        return
    middle = _middle(text, start, stop)
    yield from _halved(text, count_tokens, limit, start, middle, _Rank.WORD)
    yield from _halved(text, count_tokens, limit, middle, stop, rank)


def _middle(text: str, start: int, stop: int) -> int:
    """Behind the last space before the middle, or the first one after it, or the middle."""
    half = (start + stop) // 2
    before = text.rfind(" ", start, half)
    if before > start:
        return before + 1
    after = text.find(" ", half, stop - 1)
    return after + 1 if after > start else half
