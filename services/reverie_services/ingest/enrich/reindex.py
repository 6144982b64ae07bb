"""Rebuilds words, anchors and vectors of a tenant while the services run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from reverie.domain.text.index_terms import memory_index_text, turn_index_text
from reverie.store.memories.enrichment import EnrichableMemory
from reverie.store.search.reindex import ReindexStore
from reverie_services.ingest.dependencies import DerivationDependencies
from reverie_services.ingest.enrich.enrichment import (
    chunk_memories,
    embed_chunks,
    find_touched_nodes,
    infer_rule_causes,
)

BATCH_SIZE = 200
TURN_BATCH_SIZE = 2000

ReindexProgress = Callable[[str, int, int], None]
"""Told of a part how much of it is done, of how many."""


class ReindexTarget(StrEnum):
    """What may be derived anew."""

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
    """Derives anew, each part from where it was broken off; answers how many it went through.

    Safe to repeat and to break off. What the slow path has yet to reach is derived too, and stays
    due there: its event is still to be told.
    Raises `Unavailable` where vectors are wanted and there is no model.
    """
    done: dict[str, int] = {}
    if ReindexTarget.WORDS in targets:
        done["words"] = await _reindex_memory_words(deps, tenant, on_progress)
        done["turns"] = await _reindex_turns(deps, tenant, on_progress)
        await deps.reindex.delete_orphan_postings(tenant)
    if ReindexTarget.ANCHORS in targets:
        await deps.reindex.restore_anchors(tenant)
        done["anchors"] = await _derive_each(deps, tenant, "anchors", _rebuild_anchors, on_progress)
    if ReindexTarget.VECTORS in targets:
        await deps.model_manager.load((await deps.enrichment.get_model(tenant)).name)
        done["vectors"] = await _derive_each(deps, tenant, "vectors", _rebuild_vectors, on_progress)
        await deps.reindex.delete_orphan_vectors(tenant)
    return done


async def _reindex_memory_words(
    deps: ReindexDependencies, tenant: int, on_progress: ReindexProgress
) -> int:
    total, done = (await deps.reindex.count_rows(tenant))[0], 0
    async for ids, texts in _iterate_memory_texts(deps, tenant):
        await deps.reindex.replace_memory_words(tenant, texts)
        await deps.reindex.save_position(tenant, "words", ids[-1])
        done += len(ids)
        on_progress("words", done, total)
    await deps.reindex.save_position(tenant, "words", None)
    return done


async def _iterate_memory_texts(
    deps: ReindexDependencies, tenant: int
) -> AsyncIterator[tuple[list[UUID], dict[str, str]]]:
    after_id = await deps.reindex.load_position(tenant, "words")
    while page := await deps.reindex.list_memories(tenant, after_id, BATCH_SIZE):
        after_id = page[-1].id
        texts = {
            str(memory.id): memory_index_text(memory.key, memory.content, memory.tags)
            for memory in page
        }
        yield [memory.id for memory in page], texts


async def _reindex_turns(
    deps: ReindexDependencies, tenant: int, on_progress: ReindexProgress
) -> int:
    total, done = (await deps.reindex.count_rows(tenant))[1], 0
    after_id = await deps.reindex.load_position(tenant, "turns")
    while page := await deps.reindex.list_turns(tenant, after_id, TURN_BATCH_SIZE):
        after_id = page[-1].id
        texts = {str(turn.id): turn_index_text(turn.role, turn.content) for turn in page}
        await deps.reindex.replace_turn_words(tenant, texts)
        await deps.reindex.save_position(tenant, "turns", after_id)
        done += len(page)
        on_progress("turns", done, total)
    await deps.reindex.save_position(tenant, "turns", None)
    return done


async def _derive_each(
    deps: ReindexDependencies,
    tenant: int,
    target: str,
    derive: Callable[[ReindexDependencies, int, EnrichableMemory], Awaitable[None]],
    on_progress: ReindexProgress,
) -> int:
    """Derives from one memory after the other; a change of one meanwhile is the slow path's."""
    total, done = (await deps.reindex.count_rows(tenant))[0], 0
    after_id = await deps.reindex.load_position(tenant, target)
    while page := await deps.reindex.list_memories(tenant, after_id, BATCH_SIZE):
        for memory in page:
            loaded = await deps.enrichment.load(tenant, memory.id)
            if loaded is not None:
                await derive(deps, tenant, loaded)
        after_id = page[-1].id
        await deps.reindex.save_position(tenant, target, after_id)
        done += len(page)
        on_progress(target, done, total)
    await deps.reindex.save_position(tenant, target, None)
    return done


async def _rebuild_vectors(
    deps: ReindexDependencies, tenant: int, memory: EnrichableMemory
) -> None:
    chunked = await chunk_memories(deps, tenant, [memory], ignore_existing=True)
    for chunks in await embed_chunks(deps, chunked or []):
        await deps.enrichment.replace_chunks(tenant, memory, chunks or [])


async def _rebuild_anchors(
    deps: ReindexDependencies, tenant: int, memory: EnrichableMemory
) -> None:
    [touches] = await find_touched_nodes(deps, tenant, [memory])
    [causes] = await infer_rule_causes(deps, tenant, [memory], [touches])
    relatives = deps.settings.max_relatives
    await deps.enrichment.replace_links(tenant, memory, touches, relatives, causes)
