"""Enrichment batches: one tenant's order is kept, and one failure fails nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from reverie_services.ingest.enrichment_batches import BatchQueues


class Doing:
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
async def doing() -> Doing:
    return Doing()


async def _begun(
    groups: BatchQueues, doing: Doing, *ones: str, tenant: int = 1
) -> list[asyncio.Task[str]]:
    tasks = [asyncio.create_task(groups.submit(tenant, doing, one)) for one in ones]
    await asyncio.sleep(0.01)
    return tasks


async def test_waiting_items_are_batched_in_order_and_tenants_do_not_wait_for_each_other(
    doing: Doing,
) -> None:
    groups = BatchQueues(3)
    first = await _begun(groups, doing, "a", "b")
    others = await _begun(groups, doing, "of another", tenant=2)
    more = await _begun(groups, doing, "c", "d", "e", "f")
    assert doing.groups == [["a", "b"], ["of another"]]
    doing.on.set()
    assert await asyncio.gather(*first, *others, *more) == [*"AB", "OF ANOTHER", *"CDEF"]
    assert doing.groups[2:] == [["c", "d", "e"], ["f"]]
    assert not groups._queues


async def test_a_failed_batch_is_retried_item_by_item_and_only_bad_items_fail(
    doing: Doing,
) -> None:
    groups = BatchQueues()
    tasks = await _begun(groups, doing, "a", "bad", "c")
    later = await _begun(groups, doing, "d", "e")
    doing.on.set()
    done = await asyncio.gather(*tasks, *later, return_exceptions=True)
    assert [one for one in done if isinstance(one, str)] == [*"ACDE"]
    assert isinstance(done[1], ValueError)
    assert doing.groups == [["a", "bad", "c"], ["a"], ["bad"], ["c"], ["d", "e"]]
    assert not groups._queues


async def test_a_group_weighs_no_more_than_allowed_unless_it_is_one_item(doing: Doing) -> None:
    groups = BatchQueues(weigh=len, max_weight=4)
    tasks = await _begun(groups, doing, "aaaaaa", "bb", "cc", "d", "eeeee")
    doing.on.set()
    assert await asyncio.gather(*tasks) == ["AAAAAA", "BB", "CC", "D", "EEEEE"]
    assert doing.groups == [["aaaaaa"], ["bb", "cc"], ["d"], ["eeeee"]]


@pytest.mark.parametrize("stopped", [0, 1, 2, 3])
async def test_a_cancelled_caller_does_not_stop_the_others(doing: Doing, stopped: int) -> None:
    """The one that leads, one that it works for, the next to lead, the last."""
    groups = BatchQueues(2)
    tasks = await _begun(groups, doing, *"abcd")
    tasks[stopped].cancel()
    await asyncio.sleep(0.01)
    doing.on.set()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(done.pop(stopped), asyncio.CancelledError)
    assert done == [one.upper() for place, one in enumerate("abcd") if place != stopped]
    assert not groups._queues


async def test_the_next_leader_may_be_cancelled_as_it_is_chosen(doing: Doing) -> None:
    groups = BatchQueues(1)
    first, second, third = await _begun(groups, doing, "a", "b", "c")
    doing.on.set()
    await first
    second.cancel()
    assert (await first, await third) == ("A", "C")
    assert second.cancelled() or second.result() == "B"
    assert not groups._queues
