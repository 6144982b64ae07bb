"""Enrichment batches: the order of a tenant is kept, and one failure fails nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

from reverie.domain.core.kinds import Kind
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_endpoint import LanguageEndpoint
from reverie.store.platform.quotas import LlmUsageStore
from reverie_services.ingest.dependencies import EnrichmentDependencies
from reverie_services.ingest.enrich import worker
from reverie_services.ingest.enrich.enrichment import LoadedMemory, PreparedEnrichment
from reverie_services.ingest.enrichment_batches import BatchQueues
from tests.ingest.enrich.enrichment_setup import REFUSED, build_enrichment
from tests.support.store_setup import Store, admin_rows, new, write
from tests.support.stub_llm import stub_llm


class NotedWork:
    """Work that notes its groups, waits to be let on, and fails for a group that holds "bad"."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.on = asyncio.Event()

    async def __call__(self, group: list[str]) -> Sequence[str]:
        self.groups.append(group)
        await self.on.wait()
        if "bad" in group:
            raise ValueError(group)
        return [one.upper() for one in group]


@pytest.fixture
async def doing() -> NotedWork:
    return NotedWork()


async def _submit(
    groups: BatchQueues, doing: NotedWork, *ones: str, tenant: int = 1
) -> list[asyncio.Task[str]]:
    tasks = [asyncio.create_task(groups.submit(tenant, doing, one)) for one in ones]
    await asyncio.sleep(0.01)
    return tasks


async def test_waiting_items_are_batched_in_order_and_tenants_do_not_wait_for_each_other(
    doing: NotedWork,
) -> None:
    groups = BatchQueues(3)
    first = await _submit(groups, doing, "a", "b")
    others = await _submit(groups, doing, "of another", tenant=2)
    more = await _submit(groups, doing, "c", "d", "e", "f")
    assert doing.groups == [["a", "b"], ["of another"]]
    doing.on.set()
    assert await asyncio.gather(*first, *others, *more) == [*"AB", "OF ANOTHER", *"CDEF"]
    assert doing.groups[2:] == [["c", "d", "e"], ["f"]]
    assert not groups._queues


async def test_a_failed_batch_is_retried_item_by_item_and_only_bad_items_fail(
    doing: NotedWork,
) -> None:
    groups = BatchQueues()
    tasks = await _submit(groups, doing, "a", "bad", "c")
    later = await _submit(groups, doing, "d", "e")
    doing.on.set()
    done = await asyncio.gather(*tasks, *later, return_exceptions=True)
    assert [one for one in done if isinstance(one, str)] == [*"ACDE"]
    assert isinstance(done[1], ValueError)
    assert doing.groups == [["a", "bad", "c"], ["a"], ["bad"], ["c"], ["d", "e"]]
    assert not groups._queues


async def test_the_weight_of_a_group_is_limited_unless_it_is_one_item(doing: NotedWork) -> None:
    groups = BatchQueues(weigh=len, max_weight=4)
    tasks = await _submit(groups, doing, "aaaaaa", "bb", "cc", "d", "eeeee")
    doing.on.set()
    assert await asyncio.gather(*tasks) == ["AAAAAA", "BB", "CC", "D", "EEEEE"]
    assert doing.groups == [["aaaaaa"], ["bb", "cc"], ["d"], ["eeeee"]]


@pytest.mark.parametrize("stopped", [0, 1, 2, 3])
async def test_a_cancelled_caller_does_not_stop_the_others(doing: NotedWork, stopped: int) -> None:
    """The one that leads, one that it works for, the next to lead, the last."""
    groups = BatchQueues(2)
    tasks = await _submit(groups, doing, *"abcd")
    tasks[stopped].cancel()
    await asyncio.sleep(0.01)
    doing.on.set()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(done.pop(stopped), asyncio.CancelledError)
    assert done == [one.upper() for place, one in enumerate("abcd") if place != stopped]
    assert not groups._queues


async def test_the_next_leader_may_be_cancelled_as_it_is_chosen(doing: NotedWork) -> None:
    groups = BatchQueues(1)
    first, second, third = await _submit(groups, doing, "a", "b", "c")
    doing.on.set()
    await first
    second.cancel()
    assert (await first, await third) == ("A", "C")
    assert second.cancelled() or second.result() == "B"
    assert not groups._queues


BUG = "Orders in src/orders.py were charged twice on a double click"
FIX = "The root cause sat in the form of src/orders.py: it had no token, each press counted."


def _list_published(parts: EnrichmentDependencies) -> list[str]:
    """The subjects of the events that went to the bus."""
    calls = cast("AsyncMock", parts.publisher.bus.publish).await_args_list
    return [call.args[0].subject for call in calls]


async def _derive(store: Store, parts: EnrichmentDependencies, *ids: Any) -> list[Any]:
    """What deriving from these answers, one group of them all."""
    whose, raws = (store.me.tenant, "one"), await parts.enrichment.load_all(store.me.tenant, ids)
    groups, work = BatchQueues(), partial(worker.write_and_deduplicate, parts, whose)
    ready = [
        PreparedEnrichment(LoadedMemory(raw, None), [], {})
        for raw in sorted(raws, key=lambda raw: raw.id)
    ]
    doing = (groups.submit(store.me.tenant, work, one) for one in ready)
    return await asyncio.gather(*doing, return_exceptions=True)


async def test_one_failed_write_asks_no_model_again_for_the_others(store: Store) -> None:
    async with stub_llm() as (stub, url):
        stub.answer = lambda asked: {"names" if asked.task == "names" else "pairs": []}
        endpoint = LanguageEndpoint(
            "openai", "stub", f"{url}/v1", "key-1", timeout=30.0, retry_delay=0.0
        )
        model = LanguageModel(endpoint, LlmUsageStore(store.db, 100, 100_000))
        parts = build_enrichment(store, model)
        kinds = {BUG: Kind.BUG, FIX: Kind.LESSON, "Nobody knows src/orders.py": Kind.LESSON}
        some = [new(text, kind=kind, scope="project/p") for text, kind in kinds.items()]
        admin_rows(store.admin_url, REFUSED.format("update on memory", f"new.id = '{some[-1].id}'"))
        ids = await write(store, *some)
        done = await _derive(store, parts, *ids)
        await model.close()
    assert done[:2] == [True, True]
    assert isinstance(done[2], Exception)
    # Of causes once for all three, and of names once for each.
    asked = [(request.task, request.text) for request in stub.asked]
    assert [task for task, _ in asked].count("causes") == 1
    assert len(set(asked)) == len(asked)


async def test_a_failed_comparison_repeats_neither_writes_nor_events(store: Store) -> None:
    parts = build_enrichment(store)
    ids = await write(store, new(BUG, scope="project/p"), new(FIX, scope="project/p"))
    admin_rows(store.admin_url, "revoke select on posting_entry from reverie_app")
    done = await _derive(store, parts, *ids)
    assert all(isinstance(one, Exception) for one in done)
    published = _list_published(parts)
    admin_rows(store.admin_url, "grant select on posting_entry to reverie_app")
    assert await _derive(store, parts, *ids) == [False, False]
    assert published == ["memory.one.enriched"] * 2


async def test_concurrent_enrichments_of_a_memory_write_and_publish_it_once(
    shared_store: Store,
) -> None:
    store = shared_store
    parts, whose = build_enrichment(store), (store.me.tenant, "one")
    [raw] = await parts.enrichment.load_all(
        store.me.tenant, await write(store, new(BUG, scope="project/p"))
    )
    both = (
        worker.write_and_deduplicate(
            parts, whose, [PreparedEnrichment(LoadedMemory(raw, None), [], {})]
        )
        for _ in range(2)
    )
    assert sorted(await asyncio.gather(*both)) == [[False], [True]]
    assert _list_published(parts) == ["memory.one.enriched"]
