"""The bounded cache of values derived from texts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.domain.text.text_cache import TextCache


def test_what_was_made_of_the_texts_asked_last_is_kept_as_far_as_they_are_short_together() -> None:
    asked: list[str] = []

    def made(text: str) -> int:
        asked.append(text)
        return len(text)

    kept = TextCache(made, max_chars=5)
    for text in ("aa", "bb", "aa", "cc", "aa", "bb"):
        assert kept(text) == 2
    assert asked == ["aa", "bb", "cc", "bb"]
    for _ in range(2):
        assert kept("longer than all") == 15
    assert asked[4:] == ["longer than all"] * 2
    assert kept("bb") == 2
    assert len(asked) == 6


@settings(deadline=None)
@given(st.lists(st.text(max_size=6), max_size=60), st.integers(0, 12))
def test_whatever_is_asked_in_whatever_threads_is_answered_and_bounded(
    texts: list[str], chars: int
) -> None:
    kept = TextCache(str.upper, chars)
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(kept, texts)) == [text.upper() for text in texts]
    assert sum(map(len, kept._results)) <= chars
