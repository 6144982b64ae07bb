"""A maintenance worker killed at any statement is followed by one that finishes.

As the walk over a dream, which see; each step has a tenant of its own, all with the same memories.
"""

from __future__ import annotations

from typing import Any

import pytest

from chaos.crashes.service_processes import ServiceStarter
from chaos.crashes.statement_walk import SOON, WALK_SECONDS, Walk, chosen, open_walk
from reverie.domain.access.principals import Principal
from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import Kind
from reverie.store.memories.enrichment import EnrichmentStore
from reverie.store.sessions.sessions import SessionStore
from reverie.testing.servers import DatabaseUrls, TestRun
from tests.support.proxies import Step
from tests.support.stack import eventually
from tests.support.store_setup import add_tenants, files_of, new, principal, write

FEW = {"tend_claim", "remember", "topics_put", "tend_end"}
SCOPE = "project/shop"
ABOUT = (
    "The pool in `src/pool.py` holds ten connections because the database allows forty",
    "Deadlocks came from nested transactions opened by `src/pool.py` at shutdown",
    "Retries with jitter belong to `src/pool.py` since the incident of March",
    "Tests replace `src/pool.py` by a socket pair, which made them twice as quick",
)
TWINS = ("The build server runs every night at two", "Every night at two the build server runs")
RULE = "Always name a migration by its number and its purpose"
FADED = "The staging server is called ostrich"
OLD = "created = now() - interval '400 days', updated = now() - interval '400 days'"
STATE = """
select kind, status, content, confidence, pinned, split_part(key, ':', 1),
       (select count(*) from edge e where e.tenant = m.tenant and e.src = m.id
          and e.known_to is null),
       (select count(*) from memory_version v where v.tenant = m.tenant and v.memory = m.id)
from memory m where tenant = %s order by kind, content, status
"""


async def _plant(walk: Walk, name: str) -> int:
    """A tenant that is due, with something for each pass to do; its number."""
    [tenant] = add_tenants(walk.store.admin_url, name)
    who = principal(tenant, name)
    store = SessionStore(walk.store.db)
    sessions = [(await store.start(who, new_id(), SCOPE, {"agent": "ann"}))[0] for _ in range(3)]
    about = [new(text, scope=SCOPE, session=sessions[n % 3]) for n, text in enumerate(ABOUT)]
    made = await write(
        walk.store,
        *about,
        *(new(text, scope=SCOPE) for text in (*TWINS, RULE)),
        new(FADED, scope=SCOPE, kind=Kind.DECISION),
        who=who,
    )
    await _anchor(walk, who, made[:4])
    walk.rows(f"update memory set {OLD} where tenant = %s and content = %s", tenant, FADED)
    walk.rows(f"update memory set {OLD} where tenant = %s and content = 'src/old.py'", tenant)
    for session in sessions:
        walk.rows(
            "insert into session_utterance (tenant, memory, session, times) values (%s, %s, %s, 1)"
            " on conflict do nothing", tenant, made[6], session,
        )  # fmt: skip
    walk.rows("update memory set enriched_version = version where tenant = %s", tenant)
    walk.rows("update tenant set maintained_at = now() - interval '2 days' where id = %s", tenant)
    return tenant


async def _anchor(walk: Walk, who: Principal, memories: list[Any]) -> None:
    """What the memories touch, and a file that nothing does."""
    enrichment = EnrichmentStore(walk.store.db)
    raw = await enrichment.load(who.tenant, memories[0])
    assert raw is not None
    files = await files_of(enrichment, who.tenant, raw, "src/pool.py", "src/old.py")
    for memory in memories:
        walk.rows(
            "insert into edge (tenant, id, src, kind, dst) values (%s, gen_random_uuid(), %s,"
            " 'touches', %s)", who.tenant, memory, files["src/pool.py"],
        )  # fmt: skip


TOLD = """
select d.outcome, d.reason, count(distinct d.memory) from dream_decision d
where d.tenant = %s group by 1, 2 order by 1, 2
"""
LEFT = "select count(*) from dream_run where status = 'running'"


async def _tended(walk: Walk, tenant: int) -> bool:
    asked = "select maintained_at > now() - interval '1 hour' from tenant where id = %s"
    return walk.rows(asked, tenant) == [(True,)]


async def _free(walk: Walk, tenant: int) -> bool:
    """Whether the lease of the dead worker ran out, if it was taken or is not over."""
    asked = "select coalesce(maintenance_lease_until < now(), true) from tenant where id = %s"
    return walk.rows(asked, tenant) == [(True,)]


async def _followed(walk: Walk, name: str, step: Step) -> int:
    tenant = await _plant(walk, name)
    await walk.fall(step)
    await eventually(lambda: _free(walk, tenant))
    next_one = await walk.worker()
    try:
        await eventually(lambda: _tended(walk, tenant), SOON)
    finally:
        walk.starter.kill(next_one)
    return tenant


@pytest.mark.timeout(WALK_SECONDS)
async def test_a_worker_killed_at_any_step_of_maintenance_is_replaced_by_one_that_finishes(
    database: DatabaseUrls, nats_url: str, starter: ServiceStarter, test_run: TestRun
) -> None:
    async with open_walk(database, nats_url, starter, test_run.new_folder("walk")) as walk:
        first = await _plant(walk, "first")
        walk.victim = await walk.worker(behind=True)
        await eventually(lambda: _tended(walk, first), 40)
        walk.starter.kill(walk.victim)
        wanted, told = walk.rows(STATE, first), walk.rows(TOLD, first)
        assert len(told) >= 5
        steps = chosen(walk.proxy.steps, FEW)
        for n, step in enumerate(steps):
            tenant = await _followed(walk, f"t{n}", step)
            assert walk.rows(STATE, tenant) == wanted, step
            missing = set(told) - set(walk.rows(TOLD, tenant))
            # What one statement did is lost to the record where the next one was to tell of it.
            assert len(missing) <= 1, (step, missing)
            assert walk.rows(LEFT) == [(0,)]
        print(f"killed at {len(steps)} steps: {steps}")
