"""Tending by itself, on real Postgres: each pass goes on where it ended, and a run says what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from reverie.dream.parts import Parts
from reverie.dream.tend import tend
from reverie.store.enrichment import Enrichment
from reverie.store.tending import Garden
from reverie.testing.servers import Database
from tests.integration.store_parts import Store, admin_rows, new, open_store, write
from tests.integration.test_dream_worker import dream_parts

OLD = "update memory set created = now() - interval '9 days', updated = now() - interval '9 days'"


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    async with open_store(database) as made:
        yield made


def _status(store: Store, kind: str) -> dict[str, str]:
    found = admin_rows(store.admin_url, "select content, status from memory where kind = %s", kind)
    return dict(found)


def _runs(store: Store) -> list[dict[str, Any]]:
    found = admin_rows(
        store.admin_url,
        "select to_jsonb(r) from dream_run r where reason = 'tend' order by started",
    )
    return [row[0] for row in found]


async def _tend(store: Store, parts: Parts) -> dict[str, int]:
    return (await tend(parts, Garden(store.me.tenant, "one"))).counts


async def test_anchors_that_nothing_touches_are_put_away_and_come_back_with_what_touches_them(
    store: Store,
) -> None:
    parts, enrichment, me = dream_parts(store), Enrichment(store.db), store.me.tenant
    [memory] = await write(store, new("The pool holds ten", scope="project/shop"))
    raw = await enrichment.read(me, memory)
    assert raw is not None
    files = (await enrichment.nodes(me, raw, ["src/a.py", "src/b.py"], [])).files
    touch = (
        "insert into edge (tenant, id, src, kind, dst) values (%s, gen_random_uuid(), %s,"
        " 'touches', %s)"
    )
    admin_rows(store.admin_url, touch, me, memory, files["src/a.py"])
    assert (await _tend(store, parts)).get("collected", 0) == 0
    admin_rows(store.admin_url, OLD)
    assert (await _tend(store, parts))["collected"] == 1
    assert _status(store, "file") == {"src/a.py": "active", "src/b.py": "archived"}
    again = (await enrichment.nodes(me, raw, ["src/b.py"], [])).files
    assert again["src/b.py"] == files["src/b.py"]
    assert set(_status(store, "file").values()) == {"active"}
    admin_rows(store.admin_url, OLD)
    assert (await _tend(store, parts))["collected"] == 1
    admin_rows(store.admin_url, touch, me, memory, files["src/b.py"])
    assert (await _tend(store, parts))["restored"] == 1
    assert set(_status(store, "file").values()) == {"active"}


async def test_a_pass_whose_time_is_over_goes_on_from_there_and_the_run_tells_what_was_done(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.dream.passes.FEW", 2)
    pairs = ["Timeouts of the cart are 30 seconds", "Timeouts of the cart are 40 seconds"]
    twins = [
        "The build server runs every night at two",
        "Every night at two the build server runs",
    ]
    await write(store, *(new(text, scope="project/shop") for text in (*pairs, *twins, "Alone")))
    admin_rows(store.admin_url, "update memory set enriched_version = version")
    whole = dream_parts(store)
    hasty = replace(whole, settings=replace(whole.settings, tend_pass_seconds=0.0))
    counts: list[dict[str, int]] = []
    for _ in range(3):
        work = await tend(hasty, Garden(store.me.tenant, "one"))
        counts.append(work.counts)
        if "liken" not in work.unfinished:
            break
    done = {name: sum(one.get(name, 0) for one in counts) for name in ("merged", "contradicted")}
    assert done == {"merged": 1, "contradicted": 1}
    assert len(counts) == 3
    places = admin_rows(store.admin_url, "select pass, ended is not null from tend_pass")
    assert dict(places)["liken"] is True
    runs = _runs(store)
    assert {run["scope"] for run in runs} == {"*"}
    assert {run["status"] for run in runs} == {"done"}
    told = {name: sum(run["outcomes"].get(name, 0) for run in runs) for name in done}
    assert told == done
    assert runs[0]["outcomes"]["looked"] >= 2
    assert runs[0]["seconds"].keys() >= {"promote", "archive", "collect", "liken"}
    why = admin_rows(store.admin_url, "select why from dream_decision where outcome = 'merged'")
    assert "content words" in why[0][0]


async def test_a_tenant_in_which_there_is_nothing_leaves_no_record(store: Store) -> None:
    assert await _tend(store, dream_parts(store)) == {"looked": 0}
    assert _runs(store) == []
