"""What agents say at once is shown one turn after the other."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reverie.cli.agents.concurrent_turns import TurnOrder

Said = tuple[str, int]


def _show(said: list[Said], lengths: dict[str, int]) -> list[list[Said]]:
    order = TurnOrder[Said]()
    return [order.add(turn, (turn, n), n == lengths[turn]) for turn, n in said]


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
def test_each_turn_is_whole_and_nothing_is_lost(turns: list[str]) -> None:
    said = [(turn, turns[: place + 1].count(turn)) for place, turn in enumerate(turns)]
    lengths = {turn: turns.count(turn) for turn in turns}
    shown = [one for some in _show(said, lengths) for one in some]
    assert sorted(shown) == sorted(said)
    changes = sum(a[0] != b[0] for a, b in pairwise(shown))
    assert changes == len(lengths) - 1


def test_the_turn_that_is_shown_is_shown_as_it_goes() -> None:
    said = [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3), ("b", 3), ("b", 4), ("a", 4)]
    assert _show(said, {"a": 3, "b": 4}) == [
        [("a", 1)],
        [],
        [("a", 2)],
        [],
        [("a", 3), ("b", 1), ("b", 2)],
        [("b", 3)],
        [("b", 4)],
        [("a", 4)],
    ]
