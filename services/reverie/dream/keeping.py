"""A lease kept alive beside the work it is for, and how far that work is, told to watchers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar
from uuid import UUID

from reverie.contracts.events import memory_subject, outgoing
from reverie.domain.errors import ReverieError
from reverie.dream.parts import Parts
from reverie.dream.sessions import LeaseLost
from reverie.store.dreams import Lease

Made = TypeVar("Made")


def held(held: bool) -> None:
    """Raises `LeaseLost` where a write found that another has the scope."""
    if not held:
        raise LeaseLost


async def while_kept(parts: Parts, lease: Lease, run: UUID, work: Coroutine[Any, Any, str]) -> str:
    """The outcome of the work, beside which the lease is renewed; `LeaseLost` ends it early."""
    return await beside(_keep(parts, lease, run), work)


async def beside(keep: Coroutine[Any, Any, NoReturn], work: Coroutine[Any, Any, Made]) -> Made:
    """The outcome of the work; what keeps a lease beside it ends it early by raising."""
    working, keeping = asyncio.create_task(work), asyncio.create_task(keep)
    try:
        done, _ = await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
        return await (working if working in done else keeping)
    finally:
        for task in (working, keeping):
            task.cancel()
        await asyncio.gather(working, keeping, return_exceptions=True)


async def _keep(parts: Parts, lease: Lease, run: UUID) -> NoReturn:
    """Renews the lease every third of its time, until that fails."""
    seconds = parts.settings.lease_seconds
    before = None
    while True:
        await asyncio.sleep(seconds / 3)
        held(await parts.dreams.renew(lease, seconds))
        now = await parts.dreams.told(lease, run)
        if now and now != before:
            await _tell(parts, lease, now)
        before = now


async def _tell(parts: Parts, lease: Lease, told: dict[str, Any]) -> None:
    """Says how far a run is. It is told again soon, so one that is lost is no loss."""
    subject = memory_subject(lease.tenant_name, "digesting")
    try:
        await parts.bus.publish(outgoing(lease.tenant, subject, told, {}))
    except ReverieError:
        return
