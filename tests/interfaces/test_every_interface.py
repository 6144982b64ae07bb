"""Every operation and refusal through REST, MCP, gRPC, command line and client."""

from __future__ import annotations

import asyncio
import re
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from reverie.contracts.operations import OPERATIONS, SPECIAL_OPERATIONS
from reverie.testing.servers import TestRun
from tests.interfaces.case import DOORS, Case
from tests.interfaces.refusals import REFUSALS, REFUSING, Refusal
from tests.interfaces.running_system import World, open_world
from tests.interfaces.table import CASES
from tests.interfaces.transports import THROUGH
from tests.interfaces.typescript_client import builds_client

pytestmark = pytest.mark.asyncio(loop_scope="module")
AVAILABLE = {*DOORS} - (set() if builds_client() else {"TypeScript"})
REPEATABLE = {
    *("recall", "recall_projects", "import", "replay", "append_turns", "session_end", "confirm"),
    *("correct_session", "set_anchors", "post_message", "dream", "run_maintenance"),
}
"""Operations, besides those of GET, that answer the same of what another interface has changed."""
MOST_EMPTY = 10
FOR_EVERYBODY = {
    *("remember", "recall", "context", "forget", "get_memory", "list_memories", "feedback"),
    *("archive", "restore", "erase"),
    *("link", "unlink", "subgraph", "impact", "graph_stats", "stale", "health", "run_maintenance"),
    *("list_tasks", "update_task", "claim_task", "list_sessions", "session_start", "session_end"),
    *("append_turns", "correct_session", "preflow", "dream", "history", "rollback", "provenance"),
    *("watch_memories", "export", "import", "list_skills", "replay", "add_fact"),
}
"""What an agent and its user work with: no interface may lack it."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(test_run: TestRun) -> AsyncIterator[World]:
    async with open_world(test_run) as made:
        yield made


async def test_the_table_lists_every_operation_once_and_says_why_a_cell_is_empty() -> None:
    names = [case.operation for case in CASES]
    assert sorted(names) == sorted(one.name for one in (*OPERATIONS, *SPECIAL_OPERATIONS))
    empty = {(case.operation, door): why for case in CASES for door, why in case.empty.items()}
    assert len(empty) <= MOST_EMPTY
    assert all(door in DOORS and len(why.split()) > 5 for (_, door), why in empty.items())
    assert {operation for operation, _ in empty}.isdisjoint(FOR_EVERYBODY)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.operation)
async def test_each_operation_works_at_each_interface(world: World, case: Case) -> None:
    """What only reads finds at every interface what was made once."""
    repeatable = case.call.method == "GET" or case.operation in REPEATABLE
    fields = await case.given(world)
    doors = [door for door in DOORS if door not in case.empty and door in AVAILABLE]
    for number, door in enumerate(doors):
        if number and not repeatable:
            fields = await case.given(world)
        answer = await THROUGH[door](world, case, dict(fields))
        assert case.holds(answer, fields), (door, answer)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.name)
async def test_a_refusal_has_the_same_code_and_message_at_every_interface(
    world: World, refusal: Refusal
) -> None:
    fields = await refusal.given(world)
    answers = {door: await refuse(world, refusal, fields) for door, refuse in REFUSING.items()}
    assert {code for code, _ in answers.values()} == {refusal.code}, answers
    # How long to wait is counted from when it is asked.
    assert len({re.sub(r"\d+ seconds", "", words) for _, words in answers.values()}) == 1, answers


@pytest.mark.skipif(not builds_client(), reason="`make adapters` builds the client with npm")
async def test_the_typescript_client_passes_its_own_tests(world: World) -> None:
    process = await asyncio.create_subprocess_exec(
        "node", "--test", "test/client.test.mjs", cwd=world.folder / "typescript", stdout=PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
