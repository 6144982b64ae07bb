"""Hypothesis strategies for malformed texts and JSON; REVERIE_TEST_EXAMPLES sets how many.

`EXAMPLES`: how many a property is tried with; more with REVERIE_TEST_EXAMPLES, as `make fuzz` sets
it, and then each time others.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("REVERIE_TEST_EXAMPLES", "8"))
LONG = EXAMPLES > 50
ODD = ("\0", "\r", "\r\n", "\ufeff", "\u2028", "\x85", "\u0130", "e\u0301", "\U0001f600", "\ud800",
       "\u202e", "\t", " ", "\n", "٣", "²", "ﬁ", "一", "9" * 40, "a" * 300)  # fmt: skip
NUMBERS = (0, -1, 2**31, 2**63, 2**64, 10**30, 1e308, -0.0, 0.5)

tried = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not LONG,
    database=None,
    phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if LONG else [])],
    suppress_health_check=list(HealthCheck),
)


def made_of(marks: Sequence[str], lines: bool = True) -> st.SearchStrategy[str]:
    """Texts of marks, of what a mark may be cut or doubled to, and of odd characters."""
    cut = st.builds(lambda mark, end: mark[:end], st.sampled_from(marks), st.integers(0, 12))
    many = st.builds(lambda mark, n: mark * n, st.sampled_from(marks), st.sampled_from([2, 3, 40]))
    piece = st.sampled_from(marks) | st.sampled_from(ODD) | cut | many | st.text(max_size=8)
    joined = st.lists(piece, max_size=14).map("".join)
    return (joined | st.lists(piece, max_size=14).map("\n".join)) if lines else joined


def spliced(samples: Sequence[str]) -> st.SearchStrategy[str]:
    """Good texts cut at some places, and put together anew."""
    part = st.builds(
        lambda text, one, two: text[min(one, two) % (len(text) + 1) : max(one, two)],
        st.sampled_from(samples),
        st.integers(0, 4000),
        st.integers(0, 4000),
    )
    return st.lists(part | st.sampled_from(ODD), min_size=1, max_size=6).map("".join)


def leaves(words: Sequence[str]) -> st.SearchStrategy[Any]:
    """Values of all kinds that JSON knows, with some text that means something."""
    known = st.sampled_from(words) | st.sampled_from(ODD) | st.text(max_size=8)
    return known | st.sampled_from(NUMBERS) | st.none() | st.booleans() | st.integers()


def nested(words: Sequence[str], names: Sequence[str]) -> st.SearchStrategy[Any]:
    """JSON with these names and words in it."""
    return st.recursive(
        leaves(words),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(names), inner, max_size=4)
        ),
        max_leaves=8,
    )


def spoilt(good: Any, words: Sequence[str], names: Sequence[str]) -> st.SearchStrategy[Any]:
    """A good value with something else at up to three of its places."""
    places = list(_places(good))
    change = st.tuples(st.sampled_from(places), nested(words, names))
    return st.lists(change, min_size=1, max_size=3).map(lambda told: _changed(good, told))


def _places(value: Any, at: tuple[Any, ...] = ()) -> Any:
    if at:
        yield at
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield from _places(value[key], (*at, key))


def _changed(good: Any, changes: Sequence[tuple[tuple[Any, ...], Any]]) -> Any:
    for at, other in changes:
        good = _put(good, at, other)
    return good


def _put(value: Any, at: tuple[Any, ...], other: Any) -> Any:
    if not at:
        return other
    if isinstance(value, dict) and at[0] in value:
        return {**value, at[0]: _put(value[at[0]], at[1:], other)}
    if isinstance(value, list) and isinstance(at[0], int) and at[0] < len(value):
        return [_put(one, at[1:], other) if n == at[0] else one for n, one in enumerate(value)]
    return value


def filled(pattern: str, size: int) -> str:
    """The pattern again and again, `size` characters of it."""
    return (pattern * (size // max(len(pattern), 1) + 1))[:size]
