"""Retention of recall traces by tenant and age."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from reverie.domain.core.errors import NotFound
from reverie.domain.core.ids import new_id
from reverie.store.search.recall_traces import RecallTraceRecord, RecallTraceStore
from tests.support.store_setup import Store, admin_rows


def _trace(query: str) -> RecallTraceRecord:
    told = {"arms": {"words": 1}, "candidates": []}
    now = datetime.now(UTC)
    return RecallTraceRecord(
        new_id(), uuid4(), now, "ann", None, None, ["global"], query, {"limit": 1}, told
    )


async def test_the_newest_traces_are_kept_and_the_sweep_removes_old_ones_of_all_tenants(
    store: Store,
) -> None:
    traces = RecallTraceStore(store.db)
    made = [_trace(f"question {n}") for n in range(5)]
    await traces.add(store.me.tenant, made[:3], 3)
    await traces.add(store.me.tenant, made[3:], 3)
    await traces.add(store.other.tenant, [_trace("theirs")], 3)
    page = await traces.page(store.me, None, 10, None)
    assert [one.id for one in page] == [one.id for one in reversed(made[2:])]
    assert [one.query for one in await traces.page(store.me, made[3].id, 10, None)] == [
        "question 2"
    ]
    assert await traces.find(store.me, made[4].id) == [made[4]]
    assert await traces.find(store.me, made[4].trace or new_id()) == [made[4]]
    with pytest.raises(NotFound):
        await traces.find(store.me, made[0].id)
    old = "update recall_trace set at = at - interval '25 h' where query <> 'question 4'"
    admin_rows(store.admin_url, old)
    assert await traces.sweep(24 * 3600) == 3
    left = admin_rows(store.admin_url, "select query from recall_trace")
    assert left == [("question 4",)]


async def test_the_trace_of_a_session_deleted_meanwhile_is_not_stored(store: Store) -> None:
    traces = RecallTraceStore(store.db)
    gone = replace(_trace("asked in a session that is gone"), session=new_id())
    await traces.add(store.me.tenant, [gone, _trace("asked in none")], 10)
    left = admin_rows(store.admin_url, "select query from recall_trace")
    assert left == [("asked in none",)]
