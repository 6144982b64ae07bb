"""Rebuilds words, anchors and vectors of a tenant while the services run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from reverie.domain.text.index_terms import memory_index_text, turn_index_text
from reverie.store.memories.enrichment import EnrichableMemory
from reverie.store.search.reindex import MemoryText, ReindexStore, TurnContent
from reverie_services.ingest.dependencies import DerivationDependencies
from reverie_services.ingest.enrich.enrichment import (
    MAX_RELATIVES,
    chunk_memories,
    embed_chunks,
    infer_rule_causes,
)
from reverie_services.ingest.enrich.mentions import extract_all_mentions, link_mentions

BATCH_SIZE = 200
TURN_BATCH_SIZE = 2000

ReindexProgress = Callable[[str, int, int], None]
"""A callback: the part, how much of it is done, and how much there is."""


RowT = TypeVar("RowT", MemoryText, TurnContent)


class ReindexTarget(StrEnum):
    """The derived data that can be rebuilt."""

    WORDS = "words"
    VECTORS = "vectors"
    ANCHORS = "anchors"


@dataclass(frozen=True)
class ReindexDependencies(DerivationDependencies):
    """Dependencies of rebuilding what is derived."""

    reindex: ReindexStore


async def reindex_tenant(
    deps: ReindexDependencies,
    tenant: int,
    targets: Sequence[ReindexTarget],
    on_progress: ReindexProgress,
) -> dict[str, int]:
    """Rebuilds derived data, resuming each part; returns the number of rows processed by part.

    Safe to repeat and to interrupt. Memories that await enrichment are included and stay due,
    because their event is still to be published. Raises `Unavailable` if vectors are requested and
    there is no model.
    """
    reindex = _TenantReindex(deps, tenant, on_progress)
    memory_count, turn_count = await deps.reindex.count_rows(tenant)
    list_memories, list_turns = deps.reindex.list_memories, deps.reindex.list_turns
    done: dict[str, int] = {}
    if ReindexTarget.WORDS in targets:
        done["words"] = await reindex.run_part(
            "words", memory_count, list_memories, BATCH_SIZE, reindex.index_memories
        )
        done["turns"] = await reindex.run_part(
            "turns", turn_count, list_turns, TURN_BATCH_SIZE, reindex.index_turns
        )
        await deps.reindex.delete_orphan_postings(tenant)
    if ReindexTarget.ANCHORS in targets:
        await deps.reindex.restore_anchors(tenant)
        done["anchors"] = await reindex.run_part(
            "anchors", memory_count, list_memories, BATCH_SIZE, reindex.rebuild_anchors
        )
    if ReindexTarget.VECTORS in targets:
        await deps.model_manager.load((await deps.enrichment.get_model(tenant)).name)
        done["vectors"] = await reindex.run_part(
            "vectors", memory_count, list_memories, BATCH_SIZE, reindex.rebuild_vectors
        )
        await deps.reindex.delete_orphan_vectors(tenant)
    return done


@dataclass(frozen=True)
class _TenantReindex:
    """Rebuilds the derived data of one tenant, page by page."""

    deps: ReindexDependencies
    tenant: int
    on_progress: ReindexProgress

    async def run_part(
        self,
        part: str,
        total: int,
        list_page: Callable[[int, UUID, int], Awaitable[Sequence[RowT]]],
        page_size: int,
        process: Callable[[Sequence[RowT]], Awaitable[None]],
    ) -> int:
        """Processes all pages from the stored position on; how many rows that were."""
        store, done = self.deps.reindex, 0
        after_id = await store.load_position(self.tenant, part)
        while page := await list_page(self.tenant, after_id, page_size):
            await process(page)
            after_id = page[-1].id
            await store.save_position(self.tenant, part, after_id)
            done += len(page)
            self.on_progress(part, done, total)
        await store.save_position(self.tenant, part, None)
        return done

    async def index_memories(self, page: Sequence[MemoryText]) -> None:
        texts = {
            str(row.id): memory_index_text(row.key, row.content, row.tags, row.metadata)
            for row in page
        }
        await self.deps.reindex.replace_memory_words(self.tenant, texts)

    async def index_turns(self, page: Sequence[TurnContent]) -> None:
        texts = {str(row.id): turn_index_text(row.role, row.content) for row in page}
        await self.deps.reindex.replace_turn_words(self.tenant, texts)

    async def rebuild_anchors(self, page: Sequence[MemoryText]) -> None:
        deps, tenant = self.deps, self.tenant
        async for memory in self._load_each(page):
            mentions = await extract_all_mentions([memory])
            [touches] = await link_mentions(deps, tenant, mentions, {})
            [causes] = await infer_rule_causes(deps, tenant, [memory], [touches])
            await deps.enrichment.replace_links(tenant, memory, touches, MAX_RELATIVES, causes)

    async def rebuild_vectors(self, page: Sequence[MemoryText]) -> None:
        async for memory in self._load_each(page):
            chunked = await chunk_memories(self.deps, self.tenant, [memory], ignore_existing=True)
            embedded = await embed_chunks(self.deps, chunked or [])
            for split, chunks in zip(chunked or [], embedded, strict=True):
                # What a time limit cut keeps the vectors that it has.
                if chunks and len(chunks) == len(split.spans):
                    await self.deps.enrichment.replace_chunks(self.tenant, memory, chunks)

    async def _load_each(self, page: Sequence[MemoryText]) -> AsyncIterator[EnrichableMemory]:
        """Loads the memories one by one; enrichment handles concurrent changes."""
        for row in page:
            memory = await self.deps.enrichment.load(self.tenant, row.id)
            if memory is not None:
                yield memory
