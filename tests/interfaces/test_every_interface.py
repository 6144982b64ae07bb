"""Every operation and refusal through REST, MCP, gRPC, command line and client."""

from __future__ import annotations

import asyncio
import re
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from reverie.testing.servers import TestRun
from tests.interfaces.case import DOORS, Case
from tests.interfaces.refusals import REFUSALS, REFUSING, Refusal
from tests.interfaces.running_system import World, open_world
from tests.interfaces.table import CASES
from tests.interfaces.transports import THROUGH
from tests.interfaces.typescript_client import builds_client

pytestmark = pytest.mark.asyncio(loop_scope="module")
AVAILABLE = {*DOORS} - (set() if builds_client() else {"TypeScript"})
POSTED_READS = {"recall", "recall_projects", "import", "replay"}
"""Operations that change nothing although they are no GET; the import is a dry run."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(test_run: TestRun) -> AsyncIterator[World]:
    async with open_world(test_run) as made:
        yield made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.operation)
async def test_each_operation_works_at_each_interface(world: World, case: Case) -> None:
    """What only reads finds through every door what was made once."""
    reads = case.call.method == "GET" or case.operation in POSTED_READS
    fields = await case.given(world)
    doors = [door for door in DOORS if door not in case.empty and door in AVAILABLE]
    for number, door in enumerate(doors):
        if number and not reads:
            fields = await case.given(world)
        answer = await THROUGH[door](world, case, dict(fields))
        assert case.holds(answer, fields), (door, answer)


@pytest.mark.parametrize("one", REFUSALS, ids=lambda one: one.name)
async def test_a_refusal_has_the_same_code_and_message_at_every_interface(
    world: World, one: Refusal
) -> None:
    fields = await one.given(world)
    told = {door: await refuse(world, one, fields) for door, refuse in REFUSING.items()}
    assert {code for code, _ in told.values()} == {one.code}, told
    # How long to wait is counted from when it is asked.
    assert len({re.sub(r"\d+ seconds", "", words) for _, words in told.values()}) == 1, told


@pytest.mark.skipif(not builds_client(), reason="`make adapters` builds the client with npm")
async def test_the_typescript_client_passes_its_own_tests(world: World) -> None:
    process = await asyncio.create_subprocess_exec(
        "node", "--test", "test/client.test.mjs", cwd=world.folder / "typescript", stdout=PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
