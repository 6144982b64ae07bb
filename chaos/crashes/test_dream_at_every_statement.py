"""A dream worker killed at any statement is followed by one that finishes.

A worker changes nothing between two statements that it sends to Postgres, so it is killed when
Postgres has answered one and before it hears of it: at each statement, and at each commit. What is
walked is what a worker that nobody killed did. By default a few steps are; all of them with
`REVERIE_TEST_STEPS=all`, as `make chaos` sets it.
"""

from __future__ import annotations

import json

import pytest

from chaos.crashes.service_processes import ServiceStarter
from chaos.crashes.statement_walk import SOON, WALK_SECONDS, Walk, chosen, open_walk
from reverie.bus.streams import DREAM_WORKERS
from reverie.contracts.events import MEMORY_STREAM
from reverie.testing.servers import DatabaseUrls, TestRun
from tests.support.proxies import Step
from tests.support.stack import eventually

FEW = {"dream_claim", "llm_take", "dream_commit", "dream_summarise"}


async def _done(walk: Walk, scope: str) -> bool:
    left = "select count(*) from turn where run is null"
    jobs = "select count(*) from dream_job where scope = %s"
    return walk.rows(left) == [(0,)] and walk.rows(jobs, scope) == [(0,)]


def _check_once(walk: Walk, scopes: int) -> None:
    """Every turn by one run, no memory twice, the same for each scope, all told."""
    counted = "select sum(r.turns), (select count(*) from turn) from dream_run r"
    [(of_runs, turns)] = walk.rows(counted)
    assert of_runs == turns == scopes * 10
    assert walk.rows("select count(*) from session where pending <> 0") == [(0,)]
    twice = "select content from memory where status = 'active' group by scope, content"
    assert walk.rows(f"{twice} having count(*) > 1") == []
    per_scope = (
        "select string_agg(content, ' ' order by content) from memory"
        " where status = 'active' and kind <> 'session' group by scope"
    )
    assert len(set(walk.rows(per_scope))) == 1
    assert walk.rows("select count(*) from summary") == [(scopes,)]
    assert walk.rows("select count(*) from dream_run where status = 'running'") == [(0,)]


async def _check_told(walk: Walk) -> None:
    """Each run that came to its end was told of, or waits to be by the relay; no ticket is left."""
    waits = "select payload::jsonb ->> 'run' from outbox where subject ~ 'digested$'"
    told = {run for (run,) in walk.rows(waits)}
    # What waits may be told of meanwhile, so that it is looked at first.
    found = await walk.bus.read_page(MEMORY_STREAM, "memory.*.digested", 0, 10_000)
    told |= {json.loads(one.data)["run"] for one in found}
    ended = walk.rows(
        "select id::text from dream_run where status = 'done' and reason <> 'maintenance'"
    )
    assert {run for (run,) in ended} <= told

    async def no_ticket() -> bool:
        return await walk.bus.lag(DREAM_WORKERS) == 0

    last = await walk.worker()
    await eventually(no_ticket)
    walk.starter.kill(last)


async def _followed(walk: Walk, scope: str, step: Step) -> None:
    """A worker dies at the step, and another finishes."""
    await walk.tell(scope)
    await walk.fall(step)
    next_one = await walk.worker()
    try:
        await eventually(lambda: _done(walk, scope), SOON)
    finally:
        walk.starter.kill(next_one)


@pytest.mark.timeout(WALK_SECONDS)
async def test_a_worker_killed_at_any_step_of_a_dream_is_replaced_by_one_that_finishes(
    database: DatabaseUrls, nats_url: str, starter: ServiceStarter, test_run: TestRun
) -> None:
    async with open_walk(database, nats_url, starter, test_run.new_folder("walk")) as walk:
        await walk.tell("project/p")
        walk.victim = await walk.worker(behind=True)
        await eventually(lambda: _done(walk, "project/p"), 40)
        await eventually(walk.told)
        walk.starter.kill(walk.victim)
        steps = chosen(walk.proxy.steps, FEW)
        for n, step in enumerate(steps):
            await _followed(walk, f"project/p{n}", step)
        print(f"killed at {len(steps)} steps: {steps}")
        _check_once(walk, len(steps) + 1)
        await _check_told(walk)
