"""Every function of the domain that reads one text does so within a limit.

The functions are found by their signatures, so that a new one is covered. `make fuzz` prints the
seconds that each takes for its worst text of 64 KiB.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

from reverie.domain.core.errors import ReverieError
from reverie.domain.entities.recognition import extract_entities
from reverie.domain.redaction.redactor import redact
from tests.security.fuzz_inputs import LONG, filled
from tests.support.patterns import import_all

SIZE = 65_536 if LONG else 4_096
LIMIT = 2.0 * SIZE / 65_536
"""Seconds of the processor for `SIZE` characters: two for 64 KiB, the longest content by default.

Where time grows with the square, the longest text that a caller may send takes minutes.
"""
GROWTH = 40
"""The most that eight times the text may take, where it takes longer than a tenth of `LIMIT`."""
UNITS = (
    " ", "a", "(", "a.", "_a", "`", "a->", "/a", "not ", " \n", "[a](b ", '"\\', "a: [,",
    " _a", "[", "[a](", " *a", "**a ", "a::", "a#", "`A. ",
    *(
        ("\n", "A", "-", "*", "#", "7", "7.", "a b, ", "@a/", "a=", "<a ", "{", "|", "> ", "- a\n",
         "# a\n", "```\n", "import a, ", "from a import b, ", "because ", "instead of ", "use a, ",
         "什么", "不要用", "http://a.", "a@b.", "::", "$(", "<!-- ", "\\", "1,", "é", ": ",
         "a/b.c:1 ", "no longer a - use b. ", "when a, ", "Error: ", "password=a ", "eyJ.",
         "-----BEGIN ")
        if LONG else ()
    ),
)  # fmt: skip
ENDS = ("", "\0") if LONG else ("\0",)
"""What follows: after a NUL nothing matches that must reach the end of the text."""

EXCLUDED = {
    "load_allowlist": "reads a file of the package by its name",
    "load_rules": "reads a file of the package by its name",
    "read_cues": "reads a file of the package by its name",
    "list_named_prefixes": "answers all prefixes of a scope, which `parse_scope` has bounded",
}


@cache
def text_functions() -> dict[str, Callable[[str], Any]]:
    """Public functions of the domain with one required argument, a text."""
    found: dict[str, Callable[[str], Any]] = {}
    for module in import_all():
        if not module.__name__.startswith("reverie.domain."):
            continue
        for name, value in vars(module).items():
            function = inspect.unwrap(value) if callable(value) else None
            if (
                name.startswith("_")
                or not inspect.isfunction(function)
                or function.__module__ != module.__name__
            ):
                continue
            required = [
                parameter
                for parameter in inspect.signature(function).parameters.values()
                if parameter.default is inspect.Parameter.empty
            ]
            if len(required) == 1 and required[0].annotation == "str" and name not in EXCLUDED:
                found[f"{module.__name__}.{name}"] = function
    return found


def seconds_of(function: Callable[[str], Any], text: str, limit: float) -> float:
    """The least of three readings of the processor; one where it is below `limit`."""
    least = float("inf")
    for _ in range(3):
        began = time.process_time()
        with suppress(ReverieError, ValueError):
            function(text)
        least = min(least, time.process_time() - began)
        if least <= limit:
            break
    return least


def test_functions_that_read_a_text_are_found() -> None:
    assert {extract_entities, redact} <= set(text_functions().values())
    assert len(text_functions()) > 30


@pytest.mark.timeout(7_200 if LONG else 120)
@pytest.mark.parametrize("shard", range(2))
def test_no_text_takes_a_function_longer_than_the_limit(
    shard: int, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = {}
    for name, function in sorted(text_functions().items())[shard::2]:
        worst, unit = 0.0, ""
        for one in UNITS:
            for end in ENDS:
                taken = seconds_of(function, filled(one, SIZE) + end, LIMIT / 10)
                if taken > worst:
                    worst, unit = taken, one
        if LONG:
            with capsys.disabled():
                print(f"\n{worst:8.3f} s  {name}  {unit!r}", end="")
        short = seconds_of(function, filled(unit, SIZE // 8), 0.0)
        if worst > LIMIT or (worst > LIMIT / 10 and worst > GROWTH * short):
            slow[name] = (unit, short, worst)
    assert not slow
