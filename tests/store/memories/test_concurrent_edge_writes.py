"""Concurrent writers of edges in one tenant do not deadlock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID

import pytest

from reverie.domain.graph.causal_inference import CausalLink
from reverie.store.memories.enrichment import DerivedData, EnrichableMemory, EnrichmentStore
from tests.support.store_setup import Store, files_of, new, write

ROUNDS = 6
FILE = "src/orders.py"


@pytest.fixture(autouse=True)
def tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who loses a race is told, rather than tried again."""
    monkeypatch.setattr("reverie.store.db.idempotency._ATTEMPTS", 1)


async def test_two_concurrent_enrichments_of_related_memories_do_not_deadlock(store: Store) -> None:
    enrichment = EnrichmentStore(store.db)
    raws, node = await _related(store, enrichment, 16)
    for _ in range(ROUNDS):
        await asyncio.gather(
            _derive(enrichment, store.me.tenant, raws[::2], node),
            _derive(enrichment, store.me.tenant, raws[::-2], node),
        )


async def test_a_merge_and_an_enrichment_of_relatives_do_not_deadlock(store: Store) -> None:
    tenant, enrichment = store.me.tenant, EnrichmentStore(store.db)
    raws, node = await _related(store, enrichment, 24)
    left, pairs = raws[:12], list(zip(raws[12::2], raws[13::2], strict=True))
    for place in range(0, len(pairs), 4):
        merges = [_merge(store, *pair) for pair in pairs[place : place + 4]]
        await asyncio.gather(_derive(enrichment, tenant, left[::-1], node), *merges)


async def _related(
    store: Store, enrichment: EnrichmentStore, many: int
) -> tuple[list[EnrichableMemory], UUID]:
    """Memories that touch one file, in the order of their ids, and the file's node."""
    tenant = store.me.tenant
    texts = [new(f"Note {n} on {FILE}", scope="project/p") for n in range(many)]
    found = await enrichment.load_all(tenant, await write(store, *texts))
    raws = sorted(found, key=lambda raw: raw.id)
    node = (await files_of(enrichment, tenant, raws[0], FILE))[FILE]
    await _derive(enrichment, tenant, raws, node)
    return raws, node


async def _derive(
    enrichment: EnrichmentStore, tenant: int, raws: Sequence[EnrichableMemory], node: UUID
) -> None:
    causes = [[CausalLink(one.id, raw.id, 0.6, "because", "rule")] for one, raw in pairwise(raws)]
    made = [
        DerivedData(raw, None, {node: {"named": FILE}}, cause)
        for raw, cause in zip(raws, [[], *causes], strict=True)
    ]
    await enrichment.write_derived((tenant, "one"), made, 48)


async def _merge(store: Store, keep: EnrichableMemory, gone: EnrichableMemory) -> None:
    pair = {"older": str(keep.id), "older_version": 1, "newer": str(gone.id), "newer_version": 1}
    async with store.db.tenant_transaction(store.me.tenant) as t:
        made = await t.fetch_value("merge_memories", "one", pair, "they say the same", {})
    assert "problem" not in made, made
