"""Turns of a tenant: what is done ahead may overlap, what comes after it does not."""

from __future__ import annotations

import asyncio

import pytest

from reverie.ingest.order import Order


async def test_turns_come_in_the_order_of_arrival_however_long_the_work_ahead_takes() -> None:
    order = Order()
    told: list[str] = []

    async def handle(name: str, tenant: int, ahead: float) -> None:
        with order.place(tenant) as place:
            await asyncio.sleep(ahead)
            told.append(f"{name} is ready")
            await place.turn()
            await place.turn()
            told.append(f"{name} begins")
            await asyncio.sleep(0)
            told.append(f"{name} ends")

    await asyncio.gather(
        handle("slow", 1, 0.05), handle("quick", 1, 0), handle("another's", 2, 0.01)
    )
    assert told == [
        *("quick is ready", "another's is ready", "another's begins", "another's ends"),
        *("slow is ready", "slow begins", "slow ends", "quick begins", "quick ends"),
    ]
    await asyncio.sleep(0)
    assert not order._last


async def test_who_fails_or_is_stopped_early_lets_nobody_past_those_before_him() -> None:
    order = Order()
    first = asyncio.Event()
    told: list[str] = []

    async def long() -> None:
        with order.place(1) as place:
            await first.wait()
            await place.turn()
            told.append("first")

    async def fails() -> None:
        with order.place(1):
            raise ValueError

    async def waits(name: str) -> None:
        with order.place(1) as place:
            await place.turn()
            told.append(name)

    begun = asyncio.create_task(long())
    await asyncio.sleep(0)
    with pytest.raises(ValueError):
        await fails()
    stopped = asyncio.create_task(waits("stopped"))
    last = asyncio.create_task(waits("last"))
    await asyncio.sleep(0)
    stopped.cancel()
    await asyncio.sleep(0.01)
    assert told == []
    first.set()
    await asyncio.gather(begun, last)
    assert told == ["first", "last"]
    assert stopped.cancelled()
