"""Turns that fail: what their watchers are told, and what the log says."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pydantic import TypeAdapter

from reverie_services.engine.turns.results import end_by_failure
from tests.support.log_capture import capture_logs

WORDS = "the words of the model"


@pytest.mark.parametrize(
    ("cause", "has_stack"),
    [
        (lambda: json.loads(WORDS), False),
        (lambda: TypeAdapter(dict[str, int]).validate_python({"a": WORDS}), False),
        (lambda: int(WORDS), True),
        (lambda: dict[str, int]()[WORDS], True),
    ],
    ids=["json", "schema", "number", "key"],
)
def test_what_may_be_a_fault_of_the_engine_leaves_its_stack_in_the_log_alone(
    cause: Callable[[], object], has_stack: bool
) -> None:
    with pytest.raises((ValueError, KeyError)) as raised:
        cause()
    with capture_logs() as logs:
        result = end_by_failure(raised.value, "So. ")
    assert (result.status, result.outcome, result.content) == ("failed", "interrupted", "So. ")
    assert WORDS not in str(result)
    stacks = [entry["exc_info"] for entry in logs if entry["log_level"] == "error"]
    assert stacks == [raised.value] * has_stack


def test_what_no_turn_may_meet_is_raised_on() -> None:
    with pytest.raises(RuntimeError):
        end_by_failure(RuntimeError("broken"), "")
