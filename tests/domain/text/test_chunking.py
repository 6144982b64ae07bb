"""Texts are cut into overlapping chunks at paragraph and sentence ends."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.text.chunking import Chunk, chunk_text


def words(text: str) -> int:
    return len(text.split())


def wrapped(text: str) -> int:
    """Like a tokenizer with two special tokens: parts count more than the whole."""
    return (len(text) + 3) // 4 + 2


COUNTERS = [words, len, wrapped]

TEXTS = st.lists(
    st.sampled_from(["word", " ", "\n\n", ". ", "。", "数据库", "x" * 30, "\n", "a b c d e f g "]),
    max_size=120,
).map("".join)


def test_a_short_text_is_one_chunk() -> None:
    assert chunk_text("Two words.\n\nThree more words.", words) == [Chunk(0, 29)]


def test_no_text_is_no_chunk() -> None:
    assert chunk_text("", words) == []


def test_a_cut_prefers_the_end_of_a_paragraph() -> None:
    text = "one two three four five six.\n\nseven eight nine ten. eleven twelve."
    first, second = chunk_text(text, words, size=8, overlap=0)
    assert text[first.start : first.stop].strip() == "one two three four five six."
    assert text[second.start : second.stop].startswith("seven")


def test_a_cut_prefers_the_end_of_a_sentence_without_paragraphs() -> None:
    text = "one two three four five. six seven eight nine ten eleven."
    assert chunk_text(text, words, size=8, overlap=0)[0].stop == text.index("six")


def test_neighbours_share_the_overlap() -> None:
    text = " ".join(f"w{i}." for i in range(200))
    for before, after in pairwise(chunk_text(text, words, size=40, overlap=10)):
        assert 5 <= words(text[after.start : before.stop]) <= 10


@pytest.mark.parametrize("count", COUNTERS)
@given(text=TEXTS, size=st.integers(8, 60), overlap=st.integers(0, 40))
def test_chunks_cover_the_text_in_order_within_the_size(
    count: Callable[[str], int], text: str, size: int, overlap: int
) -> None:
    chunks = chunk_text(text, count, size, overlap)
    covered = 0
    for piece in chunks:
        assert piece.start <= covered < piece.stop
        assert count(text[piece.start : piece.stop]) <= size
        covered = piece.stop
    assert covered == len(text)
    assert all(before.start < after.start for before, after in pairwise(chunks))
