"""If one memory of an enrichment batch fails, the others are not processed twice."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest.mock import AsyncMock

from reverie.bus.interface import MessageBus
from reverie.bus.outbox_relay import EventPublisher
from reverie.domain.core.kinds import Kind
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_endpoint import LanguageEndpoint
from reverie.inference.model_manager import ModelManager
from reverie.store.memories.duplicates import DuplicateStore
from reverie.store.memories.enrichment import EnrichmentStore
from reverie.store.platform.outbox import OutboxTable
from reverie.store.platform.quotas import LlmUsageStore
from reverie.store.vault.vault import VaultStore
from reverie.testing.servers import DatabaseUrls
from reverie_services.ingest.dependencies import EnrichmentDependencies
from reverie_services.ingest.enrich import worker
from reverie_services.ingest.enrich.enrichment import LoadedMemory, PreparedEnrichment
from reverie_services.ingest.enrichment_batches import BatchQueues
from tests.support.store_setup import Store, admin_rows, new, open_store, write
from tests.support.stub_llm import stub_llm

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


def _parts(store: Store, language: LanguageModel | None) -> EnrichmentDependencies:
    """What writing and comparing take."""
    return EnrichmentDependencies(
        ModelManager("none", Path(), None, 1, False),
        EnrichmentStore(store.db),
        DuplicateStore(store.db),
        VaultStore(store.db).load_redactor,
        EventPublisher(AsyncMock(spec=MessageBus), OutboxTable(store.db)),
        language,
    )


def _published(parts: EnrichmentDependencies) -> list[str]:
    """The subjects of the events that went to the bus."""
    calls = cast("AsyncMock", parts.publisher.bus.publish).await_args_list
    return [call.args[0].subject for call in calls]


async def _derived(store: Store, parts: EnrichmentDependencies, *ids: Any) -> list[Any]:
    """What deriving from these answers, one group of them all."""
    whose, raws = (store.me.tenant, "one"), await parts.enrichment.load_all(store.me.tenant, ids)
    groups, work = BatchQueues(), partial(worker.write_and_deduplicate, parts, whose)
    ready = [
        PreparedEnrichment(LoadedMemory(raw, None), [], {})
        for raw in sorted(raws, key=lambda raw: raw.id)
    ]
    doing = (groups.submit(store.me.tenant, work, one) for one in ready)
    return await asyncio.gather(*doing, return_exceptions=True)


async def test_one_failed_write_asks_no_model_again_for_the_others(
    database: DatabaseUrls,
) -> None:
    async with open_store(database) as store, stub_llm() as (stub, url):
        stub.answer = lambda asked: {"names" if asked.task == "names" else "pairs": []}
        endpoint = LanguageEndpoint(
            "openai", "stub", f"{url}/v1", "key-1", timeout=30.0, retry_delay=0.0
        )
        model = LanguageModel(endpoint, LlmUsageStore(store.db, 100, 100_000))
        parts = _parts(store, model)
        kinds = {BUG: Kind.BUG, FIX: Kind.LESSON, "Nobody knows src/orders.py": Kind.LESSON}
        some = [new(text, kind=kind, scope="project/p") for text, kind in kinds.items()]
        admin_rows(store.admin_url, REFUSED.format(f"new.id = '{some[-1].id}'"))
        ids = await write(store, *some)
        done = await _derived(store, parts, *ids)
        await model.close()
    assert done[:2] == [True, True]
    assert isinstance(done[2], Exception)
    # Of causes once for all three, and of names once for each.
    asked = [(request.task, request.text) for request in stub.asked]
    assert [task for task, _ in asked].count("causes") == 1
    assert len(set(asked)) == len(asked)


async def test_a_failed_comparison_repeats_neither_writes_nor_events(
    database: DatabaseUrls,
) -> None:
    async with open_store(database) as store:
        parts = _parts(store, None)
        ids = await write(store, new(BUG, scope="project/p"), new(FIX, scope="project/p"))
        admin_rows(store.admin_url, "revoke select on posting_entry from reverie_app")
        done = await _derived(store, parts, *ids)
        assert all(isinstance(one, Exception) for one in done)
        published = _published(parts)
        admin_rows(store.admin_url, "grant select on posting_entry to reverie_app")
        assert await _derived(store, parts, *ids) == [False, False]
    assert published == ["memory.one.enriched"] * 2


async def test_two_concurrent_enrichments_of_one_memory_write_and_publish_it_once(
    database: DatabaseUrls,
) -> None:
    async with open_store(database) as store:
        parts, whose = _parts(store, None), (store.me.tenant, "one")
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
    assert _published(parts) == ["memory.one.enriched"]
