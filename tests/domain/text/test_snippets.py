"""The part of a text that is shown for a search hit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.text.snippets import SNIPPET_TOKENS, best_snippet, snippet_size
from reverie.inference.token_counters import ModelTokenCounter
from reverie.testing.models import model_home

FILL = "Something else happened on that day. " * 60
prose = st.lists(
    st.sampled_from(["the", "pool", "worker", "connection.", "Redis!", "why?", "a\nb", "x" * 30]),
    max_size=200,
).map(" ".join)


def test_a_short_text_comes_whole_on_one_line() -> None:
    assert best_snippet("one\n  two\tthree", "two") == "one two three"


def test_the_sentence_with_most_query_words_is_shown() -> None:
    text = f"{FILL}The pool is small. The pool of connections is exhausted. {FILL}"
    found = best_snippet(text, "pool connections exhausted")
    assert "The pool of connections is exhausted." in found
    assert found.startswith("… ")
    assert found.endswith(" …")


def test_the_first_of_equal_sentences_is_shown() -> None:
    text = f"The pool is blue. {FILL}The pool is red. {FILL}"
    assert best_snippet(text, "pool").startswith("The pool is blue.")


def test_without_a_hit_the_beginning_is_shown() -> None:
    assert best_snippet(FILL, "nothing").startswith("Something else")


def test_a_hit_deep_in_a_text_without_sentences_is_shown() -> None:
    text = "word " * 300 + "needle " + "word " * 300
    assert "needle" in best_snippet(text, "needle")


def test_a_hit_at_the_very_end_is_shown_without_a_trailing_ellipsis() -> None:
    found = best_snippet(f"{FILL}The needle", "needle")
    assert found.endswith("The needle")


def test_chinese_words_are_matched_too() -> None:
    text = "今天没有什么事情发生。" * 40 + "连接池在高负载下耗尽。" + "明天也没有什么事情。" * 40
    assert "连接池" in best_snippet(text, "连接 接池")


def test_whole_sentences_around_the_match_are_shown() -> None:
    numbered = [f"Sentence {n} is about src/part{n}.py and v1.{n} of it." for n in range(90)]
    found = best_snippet(
        " ".join([*numbered[:45], "The needle is here.", *numbered[45:]]), "needle"
    )
    assert found.startswith("… Sentence")
    assert found.endswith("of it. …")
    inner = found.removeprefix("… ").removesuffix(" …").split(" of it. ")
    assert len(inner) > 15
    assert found.index("needle") in range(len(found) // 3, 2 * len(found) // 3)


@pytest.mark.parametrize(
    "text",
    [
        FILL * 2,
        "今天没有什么事情发生。" * 90,
        "`reindex_turns(tenant, ids)` in src/a_b.py, x=1; " * 60,
    ],
)
def test_a_snippet_has_at_most_four_hundred_tokens(text: str) -> None:
    count = ModelTokenCounter(model_home() / "models" / "bge-small-en-v1.5").count
    found = best_snippet(text, "nothing")
    assert len(found) >= snippet_size(text) * 0.8
    assert SNIPPET_TOKENS * 0.5 < count(found) <= SNIPPET_TOKENS


@given(prose, prose, st.integers(20, 300))
def test_a_snippet_is_a_bounded_part_of_its_text_in_whole_words(
    text: str, words: str, size: int
) -> None:
    found = best_snippet(text, words, size)
    flat = " ".join(text.split())
    inner = found.removeprefix("… ").removesuffix(" …")
    assert len(inner) <= size
    assert inner in flat
    assert found.startswith("… ") or flat.startswith(inner)
    assert found.endswith(" …") or flat.endswith(inner)
    # A shorter one may have to cut the only word that fits.
    assert size < 60 or set(inner.split()) <= set(text.split())


def test_the_last_sentence_is_not_cut_at_its_start() -> None:
    text = "middle " * 60 + "end. The needle"
    assert "… middle middle" in best_snippet(text, "needle", 100)


@given(st.text(max_size=600), st.text(max_size=40), st.integers(1, 100))
def test_any_text_has_a_snippet(text: str, words: str, size: int) -> None:
    assert len(best_snippet(text, words, size)) <= max(size, 1) + 4


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_text_has_an_empty_snippet(text: str) -> None:
    assert best_snippet(text, "anything") == ""
