"""The memory service of Google's ADK, in an environment of its own."""

from __future__ import annotations

from tests.adapters.examples import run_example, run_script
from tests.support.stack import Stack


async def test_what_adk_finds_in_memory_is_found_and_nothing_of_others(stack: Stack) -> None:
    assert await run_script(stack, "tests/adapters/google_adk_histories.py", "google-adk") == [
        "added: 16 found",
        "added again: 16 found",
        "deleted: 14 found",
        "told: 1 found",
    ]


async def test_the_example_of_adk_remembers_between_sessions(stack: Stack) -> None:
    assert await run_example(stack, "adapters/google_adk_memory", "google-adk") == [
        "ada: Nothing was said about it before.",
        "ada: In cents.",
        "bob: Nothing was said about it before.",
    ]
