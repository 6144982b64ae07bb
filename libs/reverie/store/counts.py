"""What is counted over a whole tenant: exact while that is little, else kept for a while."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from reverie.store.database import Tenant

EXACT_UP_TO = 20_000
"""Vectors of a tenant up to which all are compared."""
COUNTED = 200_000
WALKED = 10_000
"""What a walk of the index costs that meets the tenant's vectors alone, in vectors compared."""
SMALL = 2_000
KEPT_SECONDS = 30.0
_MOST_KEPT = 10_000

T = TypeVar("T")


@dataclass(frozen=True)
class Corpus:
    """What BM25 needs of the whole: how many documents, and their mean length in words."""

    documents: float
    mean_length: float


@dataclass(frozen=True)
class Vectors:
    """How many vectors a tenant has, `COUNTED` at most, and how many its partition has in all.

    `around` is as old as the statistics of the table.
    """

    own: int
    around: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether comparing all is the cheaper way: a walk of the index meets all that lie around.

        It meets the others' vectors too, so that it costs the more the less are the tenant's.
        """
        if self.own <= EXACT_UP_TO:
            return True
        walk = WALKED * max(self.around, self.own) / self.own
        return self.own < COUNTED and self.own < walk


class Counts:
    """The counts of tenants. Those over `SMALL` hardly change in `KEPT_SECONDS`."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str], tuple[float, object]] = {}

    async def memories(self, tenant: Tenant) -> Corpus:
        """The memories that have words."""
        return await self._of(
            tenant, "memories", lambda: _corpus(tenant, "corpus"), lambda c: c.documents
        )

    async def turns(self, tenant: Tenant) -> Corpus:
        """The turns that have words."""
        return await self._of(
            tenant, "turns", lambda: _corpus(tenant, "turn_corpus"), lambda c: c.documents
        )

    async def vectors(self, tenant: Tenant) -> Vectors:
        """The vectors of the model in question."""

        async def count() -> Vectors:
            row = await tenant.row("vector_count", COUNTED)
            return Vectors(row["own"], row["around"]) if row else Vectors(0)

        return await self._of(tenant, tenant.vectors, count, lambda found: found.own)

    async def walks(self, tenant: Tenant) -> bool:
        """Whether the tenant has so many vectors that they belong into the index."""

        async def counted() -> bool:
            row = await tenant.row("vector_count", EXACT_UP_TO + 1)
            return row is not None and row["own"] > EXACT_UP_TO

        # That is true or false for long, also of small ones.
        return await self._of(tenant, f"{tenant.vectors} walked", counted, lambda _: SMALL + 1)

    async def _of(
        self,
        tenant: Tenant,
        what: str,
        count: Callable[[], Awaitable[T]],
        size: Callable[[T], float],
    ) -> T:
        kept = self._kept.get((tenant.id, what))
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]  # type: ignore[return-value]
        fresh = await count()
        if size(fresh) > SMALL:
            self._keep((tenant.id, what), fresh)
        return fresh

    def _keep(self, name: tuple[int, str], value: object) -> None:
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[name] = (time.monotonic() + KEPT_SECONDS, value)


async def _corpus(tenant: Tenant, name: str) -> Corpus:
    row = await tenant.row(name)
    if row is None:
        return Corpus(0, 1)
    return Corpus(row["documents"], max(row["mean_length"], 1.0))
