"""The bounded in-memory cache of tenants' search data."""

from __future__ import annotations

import asyncio

import pytest

from reverie.domain.core.errors import Unavailable
from reverie.store.search import tenant_cache
from reverie.store.search.tenant_cache import CacheKey, TenantCache

MB = 1_000_000


class Sized:
    """So many bytes."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


class Sizes(TenantCache[Sized]):
    """Reads what it is told of each tenant."""

    def __init__(self, megabytes: int, sizes: dict[CacheKey, int]) -> None:
        super().__init__(megabytes)
        self.sizes = sizes

    async def _load(self, name: CacheKey) -> Sized | None:
        return Sized(self.sizes[name])

    async def asked(self, name: CacheKey) -> bool:
        """Asks for it, and reads what is wanted; whether it is there then."""
        self._lookup(name)
        await self.load_pending()
        return name in self._entries


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("RELOAD_SECONDS", "RETRY_SECONDS", "LOAD_SHARE"):
        monkeypatch.setattr(tenant_cache, pause, 0.0)


async def test_an_entry_larger_than_the_cache_evicts_nothing() -> None:
    small, large = (1, "table"), (2, "table")
    kept = Sizes(2, {small: MB, large: 3 * MB})
    assert await kept.asked(small)
    assert not await kept.asked(large)
    assert small in kept._entries
    # Nor does what has grown so stay as it was.
    kept.sizes[small] = 3 * MB
    kept._request(small)
    await kept.load_pending()
    assert small not in kept._entries


async def test_the_most_recently_used_entries_stay() -> None:
    names = [(number, "table") for number in range(3)]
    kept = Sizes(2, dict.fromkeys(names, MB))
    for name in names[:2]:
        assert await kept.asked(name)
    kept._lookup(names[0])
    assert await kept.asked(names[2])
    assert list(kept._entries) == [names[0], names[2]]


async def test_concurrent_requests_for_one_entry_load_it_once() -> None:
    name, times = (1, "table"), []

    class Slow(Sizes):
        async def _load(self, name: CacheKey) -> Sized | None:
            times.append(name)
            await asyncio.sleep(0.05)
            return await super()._load(name)

    kept = Slow(2, {name: MB})
    reading = asyncio.create_task(kept.run())
    for _ in range(20):
        kept._lookup(name)
        await asyncio.sleep(0.01)
    reading.cancel()
    assert times == [name]


async def test_loading_continues_after_a_failure() -> None:
    bad, good = (1, "table"), (2, "table")

    class Failing(Sizes):
        async def _load(self, name: CacheKey) -> Sized | None:
            if name == bad:
                raise Unavailable("Postgres", "try again")
            return await super()._load(name)

    kept = Failing(2, {good: MB})
    reading = asyncio.create_task(kept.run())
    kept._lookup(bad)
    kept._lookup(good)
    for _ in range(500):
        await asyncio.sleep(0.01)
        if good in kept._entries:
            break
    reading.cancel()
    assert good in kept._entries
