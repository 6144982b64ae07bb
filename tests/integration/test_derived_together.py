"""Memories that are derived together: where one fails, nothing is done twice for the others."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from reverie.domain.kinds import Kind
from reverie.inference.asking import LanguageEndpoint
from reverie.inference.language import LanguageModel
from reverie.ingest import derive
from reverie.ingest.enrich import Read, Ready
from reverie.ingest.order import Groups
from reverie.ingest.parts import Parts
from reverie.store.duplicates import Duplicates
from reverie.store.enrichment import Enrichment
from reverie.store.llm import LlmLedger
from reverie.store.outbox import OutboxTable
from reverie.store.sealing import sealer_of
from reverie.store.vault import Vault
from reverie.testing.bus import MemoryBus
from reverie.testing.servers import Database
from tests.integration.store_parts import Store, admin_rows, new, open_store, write
from tests.stub_llm import stub_llm

BUG = "Orders in src/orders.py were charged twice on a double click"
FIX = "The root cause sat in the form of src/orders.py: it had no token, each press counted."
REFUSED = """
create function refused() returns trigger language plpgsql as $$
begin
  raise exception 'this one cannot be written';
end $$;
create trigger refused before update on memory for each row
  when ({}) execute function refused()
"""


def _parts(store: Store, language: LanguageModel | None) -> Parts:
    """What writing and comparing take."""
    made = SimpleNamespace(
        settings=SimpleNamespace(relatives=5),
        bus=MemoryBus(),
        enrichment=Enrichment(store.db),
        duplicates=Duplicates(store.db),
        outbox=OutboxTable(store.db),
        vault=Vault(store.db, sealer_of(None)),
        language=language,
    )
    return cast("Parts", made)


async def _derived(store: Store, parts: Parts, *ids: Any) -> list[Any]:
    """What deriving from these answers, one group of them all."""
    whose, raws = (store.me.tenant, "one"), await parts.enrichment.read_all(store.me.tenant, ids)
    groups, work = Groups(), partial(derive._settled, parts, whose)
    ready = [Ready(Read(raw, None), [], {}) for raw in sorted(raws, key=lambda raw: raw.id)]
    doing = (groups.do(store.me.tenant, work, one) for one in ready)
    return await asyncio.gather(*doing, return_exceptions=True)


async def test_where_one_cannot_be_written_no_model_is_asked_again_for_the_others(
    database: Database,
) -> None:
    async with open_store(database) as store, stub_llm() as (stub, url):
        stub.answer = lambda _: {"pairs": []}
        endpoint = LanguageEndpoint("openai", "stub", f"{url}/v1", "key-1", seconds=5.0, pause=0.0)
        model = LanguageModel(endpoint, LlmLedger(store.db, 100, 100_000))
        parts = _parts(store, model)
        kinds = {BUG: Kind.BUG, FIX: Kind.LESSON, "Nobody knows src/orders.py": Kind.LESSON}
        some = [new(text, kind=kind, scope="project/p") for text, kind in kinds.items()]
        admin_rows(store.admin_url, REFUSED.format(f"new.id = '{some[-1].id}'"))
        ids = await write(store, *some)
        done = await _derived(store, parts, *ids)
        await model.close()
    assert done[:2] == [True, True]
    assert isinstance(done[2], Exception)
    assert len(stub.asked) == 1


async def test_where_comparing_fails_what_was_written_is_not_written_and_told_of_again(
    database: Database,
) -> None:
    async with open_store(database) as store:
        parts = _parts(store, None)
        ids = await write(store, new(BUG, scope="project/p"), new(FIX, scope="project/p"))
        admin_rows(store.admin_url, "revoke select on posting_entry from reverie_app")
        done = await _derived(store, parts, *ids)
        assert all(isinstance(one, Exception) for one in done)
        told = await parts.bus.page("MEMORY", "memory.one.enriched", 0, 100)
        admin_rows(store.admin_url, "grant select on posting_entry to reverie_app")
        assert await _derived(store, parts, *ids) == [False, False]
    assert len(told) == 2


async def test_two_who_derive_from_one_memory_at_once_write_and_tell_it_once(
    database: Database,
) -> None:
    async with open_store(database) as store:
        parts, whose = _parts(store, None), (store.me.tenant, "one")
        [raw] = await parts.enrichment.read_all(
            store.me.tenant, await write(store, new(BUG, scope="project/p"))
        )
        both = (derive._settled(parts, whose, [Ready(Read(raw, None), [], {})]) for _ in range(2))
        assert sorted(await asyncio.gather(*both)) == [[False], [True]]
        told = await parts.bus.page("MEMORY", "memory.one.enriched", 0, 100)
    assert len(told) == 1
