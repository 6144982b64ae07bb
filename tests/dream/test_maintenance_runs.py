"""Maintenance runs: anchors archived, time limits, crashed workers, records."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from reverie.domain.core.errors import Unavailable
from reverie.store.maintenance.items import MaintenanceScope
from reverie.store.maintenance.maintenance import MaintenanceStore
from reverie.store.memories.enrichment import EnrichmentStore
from reverie_services.dream.dependencies import MaintenanceDependencies
from reverie_services.dream.maintenance.run_maintenance import run_due_maintenance, run_maintenance
from tests.dream.test_dream_worker import HOUR, maintenance_parts
from tests.support.store_setup import Store, admin_rows, files_of, new, write

OLD = "update memory set created = now() - interval '9 days', updated = now() - interval '9 days'"
EXPIRE = (
    "update tenant set maintenance_lease_until = now() - interval '1 s'"
    " where maintenance_lease_until is not null"
)


def _status(store: Store, kind: str) -> dict[str, str]:
    found = admin_rows(store.admin_url, "select content, status from memory where kind = %s", kind)
    return dict(found)


def _runs(store: Store) -> list[dict[str, Any]]:
    found = admin_rows(
        store.admin_url,
        "select to_jsonb(r) from dream_run r where reason = 'maintenance' order by started",
    )
    return [row[0] for row in found]


async def _tend(store: Store, parts: MaintenanceDependencies) -> dict[str, int]:
    return (await run_maintenance(parts, MaintenanceScope(store.me.tenant, "one"))).counts


async def test_orphaned_anchors_are_archived_and_restored_when_touched_again(store: Store) -> None:
    parts, enrichment, me = maintenance_parts(store), EnrichmentStore(store.db), store.me.tenant
    [memory] = await write(store, new("The pool holds ten", scope="project/shop"))
    raw = await enrichment.load(me, memory)
    assert raw is not None
    files = await files_of(enrichment, me, raw, "src/a.py", "src/b.py")
    touch = (
        "insert into edge (tenant, id, src, kind, dst) values (%s, gen_random_uuid(), %s,"
        " 'touches', %s)"
    )
    admin_rows(store.admin_url, touch, me, memory, files["src/a.py"])
    assert (await _tend(store, parts)).get("collected", 0) == 0
    admin_rows(store.admin_url, OLD)
    assert (await _tend(store, parts))["collected"] == 1
    assert _status(store, "file") == {"src/a.py": "active", "src/b.py": "archived"}
    again = await files_of(enrichment, me, raw, "src/b.py")
    assert again["src/b.py"] == files["src/b.py"]
    assert set(_status(store, "file").values()) == {"active"}
    admin_rows(store.admin_url, OLD)
    assert (await _tend(store, parts))["collected"] == 1
    admin_rows(store.admin_url, touch, me, memory, files["src/b.py"])
    assert (await _tend(store, parts))["restored"] == 1
    assert set(_status(store, "file").values()) == {"active"}


async def test_a_run_that_hits_its_time_limit_resumes_there_and_reports_its_work(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie_services.dream.maintenance.steps.SMALL_PAGE_SIZE", 2)
    pairs = ["Timeouts of the cart are 30 seconds", "Timeouts of the cart are 40 seconds"]
    twins = [
        "The build server runs every night at two",
        "Every night at two the build server runs",
    ]
    await write(store, *(new(text, scope="project/shop") for text in (*pairs, *twins, "Alone")))
    admin_rows(store.admin_url, "update memory set enriched_version = version")
    whole = maintenance_parts(store)
    hasty = replace(whole, settings=replace(whole.settings, maintenance_step_timeout=0.0))
    counts: list[dict[str, int]] = []
    for _ in range(3):
        work = await run_maintenance(hasty, MaintenanceScope(store.me.tenant, "one"))
        counts.append(work.counts)
        if "liken" not in work.unfinished:
            break
    done = {name: sum(one.get(name, 0) for one in counts) for name in ("merged", "contradicted")}
    assert done == {"merged": 1, "contradicted": 1}
    assert len(counts) == 3
    places = admin_rows(store.admin_url, "select pass, ended is not null from maintenance_pass")
    assert dict(places)["liken"] is True
    runs = _runs(store)
    assert {run["scope"] for run in runs} == {"*"}
    assert {run["status"] for run in runs} == {"done"}
    told = {name: sum(run["outcomes"].get(name, 0) for run in runs) for name in done}
    assert told == done
    assert runs[0]["outcomes"]["examined"] >= 2
    assert runs[0]["seconds"].keys() >= {"promote", "archive", "collect", "liken"}
    why = admin_rows(store.admin_url, "select reason from dream_decision where outcome = 'merged'")
    assert "content words" in why[0][0]


REFUSED = """
create function refused() returns trigger language plpgsql as $$
begin
  raise exception 'this one cannot be written';
end $$;
create trigger refused before update on memory for each row
  when (starts_with(new.content, 'Timeouts')) execute function refused();
select 1
"""


async def test_a_memory_that_fails_each_time_keeps_the_others_from_nothing(store: Store) -> None:
    poison = ["Timeouts of the cart are 30 seconds", "Timeouts of the cart are 40 seconds"]
    twins = [
        "The build server runs every night at two",
        "Every night at two the build server runs",
    ]
    await write(store, *(new(text, scope="project/shop") for text in (*poison, *twins)))
    admin_rows(store.admin_url, "update memory set enriched_version = version returning 1")
    admin_rows(store.admin_url, REFUSED)
    counts = await _tend(store, maintenance_parts(store))
    assert counts["failed"] >= 1
    assert counts["merged"] == 1
    [run] = _runs(store)
    assert (run["status"], run["outcomes"]["failed"]) == ("done", counts["failed"])
    why = admin_rows(store.admin_url, "select reason from dream_decision where outcome = 'failed'")
    assert {reason for (reason,) in why} == {"RaiseError"}


async def test_a_tenant_with_nothing_to_do_leaves_no_record(store: Store) -> None:
    assert await _tend(store, maintenance_parts(store)) == {"examined": 0}
    assert _runs(store) == []


async def _due(store: Store, tenant: int | None = None) -> list[tuple[bool, int]]:
    """Whether each tenant, or one, is due, and how often it was begun."""
    old = "maintained_at < now() - interval '1 h', maintenance_attempts"
    where = f"id = {tenant}" if tenant else "true"
    return admin_rows(store.admin_url, f"select {old} from tenant where {where} order by id")


async def test_a_tenant_whose_worker_died_is_taken_over_and_given_up_after_three_attempts(
    store: Store,
) -> None:
    parts = maintenance_parts(store)
    tending, day = parts.maintenance, 86_400.0
    assert await tending.is_any_due(day) is False
    assert await run_due_maintenance(parts, 0.0) is False
    admin_rows(store.admin_url, "update tenant set maintained_at = now() - interval '2 days'")
    one = await tending.claim_due(day, HOUR)
    two = await tending.claim_due(day, HOUR)
    assert one is not None
    assert two is not None
    assert {turn.scope.tenant for turn in (one, two)} == {store.me.tenant, store.other.tenant}
    assert await tending.claim_due(day, HOUR) is None
    assert await tending.is_any_due(day) is False
    assert await tending.renew(one, 0.0) is True
    assert await tending.is_any_due(day) is True
    again = await tending.claim_due(day, HOUR)
    assert again is not None
    assert (again.scope, again.attempts) == (one.scope, 2)
    assert (await tending.renew(one, HOUR), await tending.release(one, None)) == (False, False)
    assert await tending.release(two, None) is True
    assert await _due(store, two.scope.tenant) == [(False, 0)]

    admin_rows(store.admin_url, EXPIRE)
    last = await tending.claim_due(day, HOUR)
    assert last is not None
    assert last.attempts == 3
    admin_rows(store.admin_url, EXPIRE)
    daily = replace(parts, settings=replace(parts.settings, maintenance_interval=day))
    assert await run_due_maintenance(daily, 0.0) is True
    assert await _due(store, one.scope.tenant) == [(False, 0)]
    [run] = _runs(store)
    assert (run["status"], run["error"]) == ("failed", "MaintenanceAttemptsExhausted")


async def test_a_tenant_is_maintained_after_an_outage_however_often_it_was_interrupted(
    store: Store,
) -> None:
    parts = maintenance_parts(store)
    await write(store, new("The cart holds ten"))
    admin_rows(store.admin_url, "update tenant set maintained_at = now() - interval '2 days'")

    class CutOff(MaintenanceStore):
        async def load_positions(self, scope: MaintenanceScope) -> dict[str, UUID]:
            raise Unavailable("Postgres", "try again shortly")

    away = replace(parts, maintenance=CutOff(store.db))
    for _ in range(2 * (parts.settings.max_attempts + 1)):
        with pytest.raises(Unavailable):
            await run_due_maintenance(away, 0.0)
        admin_rows(store.admin_url, EXPIRE)
    for _ in range(2):
        assert await run_due_maintenance(parts, 0.0) is True
    assert await _due(store) == [(False, 0), (False, 0)]
    assert {run["error"] for run in _runs(store)} == {"Unavailable", None}


async def test_an_interrupted_or_stopping_run_is_handed_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie_services.dream.maintenance.steps.SMALL_PAGE_SIZE", 1)
    parts = maintenance_parts(store)
    await write(store, new("The cart holds ten"), new("Orders are paid at once"))
    admin_rows(store.admin_url, "update memory set enriched_version = version")
    old = "update tenant set maintained_at = now() - interval '2 days' where name = 'one'"
    admin_rows(store.admin_url, old)
    hasty = replace(parts, settings=replace(parts.settings, maintenance_step_timeout=0.0))
    for _ in range(2):
        assert await run_due_maintenance(hasty, 0.0) is True
        assert await _due(store, store.me.tenant) == [(True, 0)]
    begun = asyncio.Event()

    class Slow(MaintenanceStore):
        async def load_positions(self, scope: MaintenanceScope) -> dict[str, UUID]:
            begun.set()
            await asyncio.sleep(HOUR)
            return {}

    stopped = asyncio.create_task(
        run_due_maintenance(replace(parts, maintenance=Slow(store.db)), 0.0)
    )
    await begun.wait()
    assert await parts.maintenance.is_any_due(HOUR) is False
    stopped.cancel()
    with suppress(asyncio.CancelledError):
        await stopped
    assert await _due(store, store.me.tenant) == [(True, 0)]
    assert await run_due_maintenance(parts, 0.0) is True
    assert await _due(store, store.me.tenant) == [(False, 0)]
