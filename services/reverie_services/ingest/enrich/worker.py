"""Enriches and deduplicates stored memories in batches, on events and for the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from uuid import UUID

from pydantic import ValidationError

from reverie.bus.interface import Message, Reject, verify_tenant
from reverie.contracts.events import MemoryEvent
from reverie.runtime.observability.tracing import span, trace_headers
from reverie.store.memories.duplicates import deduplicate_all
from reverie_services.ingest.dependencies import EnrichmentDependencies
from reverie_services.ingest.enrich.enrichment import (
    PreparedEnrichment,
    embed_chunks,
    load_memories,
    write_enrichments,
)
from reverie_services.ingest.enrichment_batches import EnrichmentBatches


async def enrich_memory(
    deps: EnrichmentDependencies,
    batches: EnrichmentBatches,
    tenant: tuple[int, str],
    memory_id: UUID,
) -> bool:
    """Derives the missing data of a memory, and merges or links it with similar memories.

    Returns whether nothing is missing any more. Memories of a tenant are written in the order of
    the calls with the same `batches`, so that each is compared with all earlier ones.
    """
    seen_version = 0
    while loaded := await batches.loading.submit(
        tenant[0], partial(load_memories, deps, tenant[0]), memory_id
    ):
        if not verify_tenant(tenant[1], loaded.memory.tenant_name):
            return False
        if loaded.memory.version == seen_version:
            return not loaded.is_due
        memory = str(loaded.memory.id)
        with span("enrich", memory=memory) if loaded.is_due else nullcontext():
            chunks = await batches.embedding.submit(
                tenant[0], partial(embed_chunks, deps), loaded.chunked
            )
            ready = PreparedEnrichment(loaded, chunks, trace_headers())
            written = await batches.writing.submit(
                tenant[0], partial(write_and_deduplicate, deps, tenant), ready
            )
        if written:
            deps.model_selection_queue.observe(tenant[0], loaded.memory.content)
        if written or not loaded.is_due:
            return True
        # It changed concurrently, another worker was first, or there is no model.
        seen_version = loaded.memory.version
    return True


async def write_and_deduplicate(
    deps: EnrichmentDependencies, tenant: tuple[int, str], group: Sequence[PreparedEnrichment]
) -> list[bool]:
    """Writes what is due and merges duplicates; returns whether each memory was written now."""
    due = {item.id: item for item in group if item.loaded.is_due and item.written is None}
    await write_enrichments(deps, tenant, list(due.values()))
    headers = {item.id: item.headers for item in group}
    with span("reconcile", memories=len(headers)):
        outcomes = await deduplicate_all(deps.duplicates, tenant, headers)
        await deps.publisher.publish(tenant[0], [outcome.outcome.event for outcome in outcomes])
    return [bool(due.get(item.id, item).written) for item in group]


async def handle_remembered(
    deps: EnrichmentDependencies, batches: EnrichmentBatches, message: Message
) -> None:
    """`memory.<tenant>.remembered`: derives from the memory, once in effect."""
    try:
        event = MemoryEvent.model_validate_json(message.data)
    except ValidationError as error:
        raise Reject(f"not a memory event: {error.error_count()} fields are wrong") from error
    # Enriched before the model is loaded, a memory lacks its vectors until the scheduler finds it.
    await deps.model_manager.wait_for_first_attempt()
    await enrich_memory(deps, batches, (event.tenant, message.subject.split(".")[1]), event.id)
