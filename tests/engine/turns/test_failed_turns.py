"""Turns that fail: what their watchers are told, and what the log says."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pydantic import TypeAdapter

from reverie_services.engine.turns.results import end_by_failure
from tests.support.log_capture import capture_logs

WORDS = "the words of the model"


def _raise_by_json() -> None:
    json.loads(WORDS)


def _raise_by_schema() -> None:
    TypeAdapter(dict[str, int]).validate_python({"a": WORDS})


def _raise_by_number() -> None:
    int(WORDS)


def _raise_by_key() -> None:
    dict[str, int]()[WORDS]


@pytest.mark.parametrize(
    ("cause", "has_stack"),
    [
        (_raise_by_json, False),
        (_raise_by_schema, False),
        (_raise_by_number, True),
        (_raise_by_key, True),
    ],
)
def test_what_may_be_a_fault_of_the_engine_leaves_its_stack_in_the_log_alone(
    cause: Callable[[], None], has_stack: bool
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
