"""Derives chunks, vectors, anchors, relations and causes from memories. Safe to repeat."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from uuid import UUID

from reverie.domain.core.errors import Unavailable
from reverie.domain.core.kinds import ANCHOR_KINDS
from reverie.domain.graph.causal_inference import CausalLink, CauseCandidate, infer_causes
from reverie.domain.text.chunking import chunk_text
from reverie.inference.embedder import Embedder
from reverie.inference.llm_endpoint import LanguageModelError
from reverie.store.memories.enrichment import (
    DerivedData,
    EmbeddedChunk,
    EnrichableMemory,
    TextEmbedding,
)
from reverie_services.ingest.dependencies import DerivationDependencies, EnrichmentDependencies
from reverie_services.ingest.enrich import derivation_timeout
from reverie_services.ingest.enrich.derivation_timeout import derive_in_thread, report_cut
from reverie_services.ingest.enrich.llm_causes import find_causes, may_have_unfound_causes
from reverie_services.ingest.enrich.mentions import (
    Origins,
    add_llm_entities,
    extract_all_mentions,
    link_mentions,
)
from reverie_services.ingest.enrichment_batches import MAX_BATCH_TEXTS

MAX_CANDIDATES = 40
MAX_RELATIVES = 5
CHUNK_TOKENS, CHUNK_OVERLAP = 200, 40

SplitContent = tuple[Sequence[tuple[int, int, bytes]], Mapping[bytes, str]]
"""The spans of chunks with their hashes, and their texts by hash."""
_NO_CHUNKS: SplitContent = ((), {})
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class ChunkedMemory:
    """The chunks of a memory: spans with hashes, texts by hash, and existing embeddings by hash.

    `embedder`: creates the missing vectors.
    """

    memory: UUID
    spans: Sequence[tuple[int, int, bytes]]
    texts: Mapping[bytes, str]
    embeddings: Mapping[bytes, TextEmbedding]
    embedder: Embedder


@dataclass(frozen=True)
class LoadedMemory:
    """A memory as stored now; `chunked`: None if nothing is to be embedded."""

    memory: EnrichableMemory
    chunked: ChunkedMemory | None

    @property
    def is_due(self) -> bool:
        """Whether anything is to be derived from it."""
        return (
            self.memory.enriched_version < self.memory.version
            and self.memory.kind not in ANCHOR_KINDS
        )


@dataclass
class PreparedEnrichment:
    """A memory with its embeddings, and headers for its events.

    `written`: whether anything was written for it; None until then. If the rest of its group fails
    later, that write is not repeated.
    """

    loaded: LoadedMemory
    chunks: Sequence[EmbeddedChunk] | None
    headers: Mapping[str, str]
    written: bool | None = None

    @property
    def id(self) -> UUID:
        """The memory's."""
        return self.loaded.memory.id


async def load_memories(
    deps: DerivationDependencies, tenant: int, ids: Sequence[UUID]
) -> list[LoadedMemory | None]:
    """Loads the memories and chunks those that are due; None for a deleted memory."""
    loaded = {
        memory.id: LoadedMemory(memory, None)
        for memory in await deps.enrichment.load_all(tenant, ids)
    }
    due_memories = [item.memory for item in loaded.values() if item.is_due]
    chunked_memories = await chunk_memories(deps, tenant, due_memories) or ()
    loaded |= {
        memory.id: LoadedMemory(memory, chunked)
        for memory, chunked in zip(due_memories, chunked_memories, strict=False)
    }
    return [loaded.get(item) for item in ids]


async def chunk_memories(
    deps: DerivationDependencies,
    tenant: int,
    memories: Sequence[EnrichableMemory],
    ignore_existing: bool = False,
) -> list[ChunkedMemory] | None:
    """Splits the memories into chunks; None if there is no model.

    `ignore_existing`: existing vectors are not reused.
    """
    model = await deps.enrichment.get_model(tenant)
    try:
        embedder = await deps.model_manager.get_embedder(model.name, model.probe)
    except Unavailable:
        return None
    split = [
        await derive_in_thread(
            memory.id, "chunks", partial(_split_content, deps, memory.searched_text), _NO_CHUNKS
        )
        for memory in memories
    ]
    hashes = list(dict.fromkeys(digest for _, texts in split for digest in texts))
    embeddings = (
        {}
        if ignore_existing or not hashes
        else await deps.enrichment.load_embeddings(tenant, hashes, model)
    )
    return [
        ChunkedMemory(memory.id, spans, texts, embeddings, embedder)
        for memory, (spans, texts) in zip(memories, split, strict=True)
    ]


def _split_content(deps: DerivationDependencies, content: str) -> SplitContent:
    spans = chunk_text(content, deps.model_manager.counter.count, CHUNK_TOKENS, CHUNK_OVERLAP)
    texts = [content[span.start : span.stop] for span in spans]
    hashes = [hashlib.sha256(text.encode()).digest() for text in texts]
    digested_spans = [
        (span.start, span.stop, digest) for span, digest in zip(spans, hashes, strict=True)
    ]
    return digested_spans, dict(zip(hashes, texts, strict=True))


async def embed_chunks(
    deps: DerivationDependencies, chunked_memories: Sequence[ChunkedMemory | None]
) -> list[list[EmbeddedChunk] | None]:
    """The chunks with their vectors; None for a memory that was not chunked.

    Without embeddings, each memory has no chunks and waits for none.
    The chunks of short memories come first. Those that are not embedded within the time limit are
    left out. Raises ValueError if the memories use different embedders.
    """
    if not deps.model_manager.embeds:
        return [[] for _ in chunked_memories]
    present = [chunked for chunked in chunked_memories if chunked is not None]
    if not present:
        return [None] * len(chunked_memories)
    [embedder] = {chunked.embedder for chunked in present}
    present.sort(key=lambda chunked: len(chunked.texts))
    texts = {digest: text for chunked in present for digest, text in chunked.texts.items()}
    existing = {
        digest: embedding for chunked in present for digest, embedding in chunked.embeddings.items()
    }
    vectors = {digest: embedding.vector for digest, embedding in existing.items()}
    word_weights = {
        digest: embedding.words
        for digest, embedding in existing.items()
        if embedding.words is not None
    }
    encoder = deps.model_manager.sparse_encoder
    await asyncio.gather(
        _run_missing(embedder.embed, texts, vectors),
        *([_run_missing(encoder.encode, texts, word_weights)] if encoder else []),
    )
    for chunked in present:
        if not vectors.keys() >= chunked.texts.keys():
            report_cut(chunked.memory, "vectors", derivation_timeout.EMBEDDING_SECONDS)
    return [
        None
        if chunked is None
        else [
            EmbeddedChunk(
                start, stop, digest, vectors[digest], word_weights.get(digest), embedder.name
            )
            for start, stop, digest in chunked.spans
            if digest in vectors
        ]
        for chunked in chunked_memories
    ]


async def _run_missing(
    model: Callable[[list[str]], Awaitable[Iterable[ResultT]]],
    texts: Mapping[bytes, str],
    results: dict[bytes, ResultT],
) -> None:
    """Adds the model's results of the texts that have none, until the time limit has passed."""
    missing = [(digest, text) for digest, text in texts.items() if digest not in results]
    loop = asyncio.get_running_loop()
    deadline = loop.time() + derivation_timeout.EMBEDDING_SECONDS
    for first in range(0, len(missing), MAX_BATCH_TEXTS):
        if first and loop.time() >= deadline:
            return
        digests, batch = zip(*missing[first : first + MAX_BATCH_TEXTS], strict=True)
        results.update(zip(digests, await model(list(batch)), strict=True))


async def write_enrichments(
    deps: EnrichmentDependencies, tenant: tuple[int, str], group: Sequence[PreparedEnrichment]
) -> None:
    """Writes derived data, publishes events, and sets `written` on each item.

    Without a model, only anchors are written, and the memory stays due for its vectors.
    """
    # The cost of one model answer is stored before the next call.
    group_size = 1 if deps.language_model else max(1, len(group))
    for start in range(0, len(group), group_size):
        await _write_group(deps, tenant, group[start : start + group_size])


async def _write_group(
    deps: EnrichmentDependencies, tenant: tuple[int, str], group: Sequence[PreparedEnrichment]
) -> None:
    tenant_id, memories = tenant[0], [item.loaded.memory for item in group]
    mentions = await extract_all_mentions(memories)
    origins: dict[UUID, Origins] = {}
    for index, found in enumerate(mentions):
        mentions[index], origins[found.memory.id] = await add_llm_entities(deps, tenant_id, found)
    touches = await link_mentions(deps, tenant_id, mentions, origins)
    cause_candidates = await _load_cause_candidates(deps, tenant_id, memories, touches)
    derived = []
    for item, memory, nodes, others in zip(group, memories, touches, cause_candidates, strict=True):
        causes = await _infer_causes(memory, others)
        llm_causes = await _find_llm_causes(deps, tenant_id, memory, others, causes)
        all_causes = [*causes, *(llm_causes or [])]
        derived.append(
            DerivedData(
                memory, item.chunks, nodes, all_causes, llm_causes is not None, item.headers
            )
        )
    events = await deps.enrichment.write_derived(tenant, derived, MAX_RELATIVES)
    for item, written_events in zip(group, events, strict=True):
        item.written = bool(written_events)
    await deps.publisher.publish(tenant_id, [item for batch in events for item in batch])
    if any(item.chunks for item in group):
        await deps.enrichment.index_vectors(tenant_id, len(group))


async def infer_rule_causes(
    deps: DerivationDependencies,
    tenant: int,
    memories: Sequence[EnrichableMemory],
    touches: Sequence[Iterable[UUID]],
) -> list[list[CausalLink]]:
    """Infers causes and effects of each memory from the texts, by rules."""
    candidates = await _load_cause_candidates(deps, tenant, memories, touches)
    return [
        await _infer_causes(memory, others)
        for memory, others in zip(memories, candidates, strict=True)
    ]


async def _infer_causes(
    memory: EnrichableMemory, others: Sequence[CauseCandidate]
) -> list[CausalLink]:
    work = partial(infer_causes, _build_cause_candidate(memory), others)
    return await derive_in_thread(memory.id, "causes", work, [])


async def _load_cause_candidates(
    deps: DerivationDependencies,
    tenant: int,
    memories: Sequence[EnrichableMemory],
    touches: Sequence[Iterable[UUID]],
) -> list[list[CauseCandidate]]:
    """Candidates for causes and effects; none for imported memories."""
    nodes_by_memory = {
        memory.id: nodes
        for memory, nodes in zip(memories, touches, strict=True)
        if not memory.carried
    }
    queried = [memory for memory in memories if memory.id in nodes_by_memory]
    candidates = await deps.enrichment.find_cause_candidates(
        tenant, queried, list(nodes_by_memory.values()), MAX_CANDIDATES
    )
    return [candidates.get(memory.id, []) for memory in memories]


async def _find_llm_causes(
    deps: EnrichmentDependencies,
    tenant: int,
    memory: EnrichableMemory,
    others: Sequence[CauseCandidate],
    rule_causes: Sequence[CausalLink],
) -> list[CausalLink] | None:
    """Finds further causes with the language model; None if it is not set, not called or failed."""
    if deps.language_model is None or not may_have_unfound_causes(
        _build_cause_candidate(memory), others, rule_causes
    ):
        return None
    try:
        return await find_causes(
            deps.language_model,
            tenant,
            await deps.load_redactor(tenant),
            _build_cause_candidate(memory),
            others,
        )
    except LanguageModelError:
        return None


def _build_cause_candidate(memory: EnrichableMemory) -> CauseCandidate:
    files = tuple((memory.git or {}).get("files", ()))
    at = min(memory.valid_from or memory.created, memory.created)
    return CauseCandidate(memory.id, memory.kind, memory.content, at, memory.session, files)
