"""Splitting of a text into overlapping chunks at paragraph, sentence or word boundaries."""

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


class _BoundaryRank(IntEnum):
    WORD = 0
    SENTENCE = 1
    PARAGRAPH = 2


@dataclass(frozen=True)
class _Atom:
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
    atoms = list(_split_atoms(text, count_tokens, max(1, size // 4)))
    token_sums = [0, *accumulate(atom.tokens for atom in atoms)]
    return list(_pack_chunks(text, count_tokens, atoms, token_sums, size, min(overlap, size // 2)))


def _pack_chunks(
    text: str,
    count_tokens: Callable[[str], int],
    atoms: list[_Atom],
    token_sums: list[int],
    size: int,
    overlap: int,
) -> Iterator[Chunk]:
    first, covered = 0, 0
    while covered < len(atoms):
        last = _find_fitting_end(text, count_tokens, atoms, token_sums, first, size)
        if last <= covered:
            # The shared beginning left no room for anything new.
            first = covered
            last = _find_fitting_end(text, count_tokens, atoms, token_sums, first, size)
        if last < len(atoms):
            last = _find_best_cut(
                atoms, token_sums, max(first, covered), last, token_sums[first] + size // 2
            )
        yield Chunk(atoms[first].start, atoms[last - 1].stop)
        covered = last
        overlap_start = bisect_right(token_sums, token_sums[last] - overlap - 1)
        first = max(first + 1, min(overlap_start, last))


def _find_fitting_end(
    text: str,
    count_tokens: Callable[[str], int],
    atoms: list[_Atom],
    token_sums: list[int],
    first: int,
    size: int,
) -> int:
    """The end of the longest run of atoms from `first` within `size` tokens, at least one."""
    last = max(first + 1, bisect_right(token_sums, token_sums[first] + size) - 1)
    # Counts of parts need not add up to the count of the whole.
    while last > first + 1 and count_tokens(text[atoms[first].start : atoms[last - 1].stop]) > size:
        last -= 1
    return last


def _find_best_cut(
    atoms: list[_Atom], token_sums: list[int], low: int, last: int, min_sum: int
) -> int:
    ends = [i for i in range(low + 1, last + 1) if token_sums[i] >= min_sum or i == last]
    return max(ends, key=lambda i: (atoms[i - 1].rank, i))


def _split_atoms(text: str, count_tokens: Callable[[str], int], limit: int) -> Iterator[_Atom]:
    for start, stop in _split_spans(_PARAGRAPH, text, 0, len(text)):
        for low, high in _split_spans(_SENTENCE, text, start, stop):
            rank = _BoundaryRank.PARAGRAPH if high == stop else _BoundaryRank.SENTENCE
            yield from _halve(text, count_tokens, limit, low, high, rank)


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
    split_at = _find_middle(text, start, stop)
    yield from _halve(text, count_tokens, limit, start, split_at, _BoundaryRank.WORD)
    yield from _halve(text, count_tokens, limit, split_at, stop, rank)


def _find_middle(text: str, start: int, stop: int) -> int:
    """After the last space before the middle, else after the next one, else the middle."""
    half = (start + stop) // 2
    before = text.rfind(" ", start, half)
    if before > start:
        return before + 1
    after = text.find(" ", half, stop - 1)
    return after + 1 if after > start else half
