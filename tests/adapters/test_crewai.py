"""The storage backend of CrewAI, in an environment of its own."""

from __future__ import annotations

from tests.adapters.examples import run_example, run_script
from tests.support.stack import Stack


async def test_what_lance_keeps_and_finds_is_kept_and_found(stack: Stack) -> None:
    assert await run_script(stack, "tests/adapters/crewai_records.py", "crewai") == ["held"]


async def test_the_example_of_crewai_remembers_between_crews(stack: Stack) -> None:
    assert await run_example(stack, "adapters/crewai_memory", "crewai") == [
        "I do not know.",
        "Prices are kept in cents.",
        "In cents.",
    ]
