"""Calls that repeat alone or in blocks are found, and those that only look alike are not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reverie_services.engine.turns.capabilities import find_repetition, sign_call


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4), st.lists(st.sampled_from("xyz")))
def test_a_block_of_up_to_four_calls_is_found_when_it_comes_the_third_time(
    block: list[str], before: list[str]
) -> None:
    assert find_repetition([*before, *block * 3]) is not None


def test_calls_that_only_look_alike_are_no_repetition() -> None:
    calls = [sign_call("read_file", {"path": str(number % 7)}) for number in range(30)]
    assert find_repetition(calls) is None
    assert sign_call("x", {"a": 1, "b": 2}) == sign_call("x", {"b": 2, "a": 1})
