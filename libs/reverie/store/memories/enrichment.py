"""Writes what is derived from a memory: chunks, embeddings, file and entity edges, causes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector

from reverie.contracts.events import (
    OutgoingEvent,
    build_outgoing_event,
    git_subject,
    memory_subject,
)
from reverie.domain.access.scopes import project_of_scope
from reverie.domain.core.errors import Unavailable
from reverie.domain.core.ids import new_id
from reverie.domain.core.memory import hash_content
from reverie.domain.entities.recognition import Entity
from reverie.domain.graph.causal_inference import CausalLink, CauseCandidate
from reverie.domain.text.index_terms import searched_text
from reverie.store.db.database import Database
from reverie.store.db.idempotency import retry_on_conflict
from reverie.store.search.embedding_models import (
    DEFAULT_MODEL,
    EmbeddingModelStore,
    TenantModel,
    decode_sparse_vector,
    encode_sparse_vector,
)

INDEX_BATCH = 32
"""Vectors put into the index that is walked with each memory: more than one has, to catch up."""

Vector = NDArray[np.float32]
WordWeights = Mapping[int, float]


@dataclass(frozen=True)
class EnrichableMemory:
    """A memory as enrichment reads it. `carried`: its links were imported with it."""

    id: UUID
    version: int
    enriched_version: int
    scope: str
    kind: str
    content: str
    metadata: dict[str, Any]
    session: UUID | None
    agent: str | None
    git: dict[str, Any] | None
    created: datetime
    valid_from: datetime | None
    carried: bool = False
    tenant_name: str = ""

    @property
    def searched_text(self) -> str:
        """The text by which it is found: what its chunks are cut from."""
        return searched_text(self.content, self.metadata)


@dataclass(frozen=True)
class EmbeddedChunk:
    """A chunk of a memory: offsets into its searched text, SHA-256 of its text, and its embeddings.

    `words`: weights of a sparse model by word number; None if not computed.
    """

    start: int
    stop: int
    hash: bytes
    vector: Vector
    words: WordWeights | None = None
    model: str = DEFAULT_MODEL


@dataclass(frozen=True)
class TextEmbedding:
    """The embeddings of a text."""

    vector: Vector
    words: WordWeights | None = None


@dataclass(frozen=True)
class MemoryMentions:
    """A memory with the paths and entities that it mentions."""

    memory: EnrichableMemory
    files: Sequence[str]
    entities: Sequence[Entity]


@dataclass(frozen=True)
class DerivedData:
    """Derived data of a memory, written while the memory is at its version.

    `chunks` None leaves the chunks unchanged and the memory due. `touches` maps file and entity
    nodes to the edge's metadata; earlier edges that are missing there are closed. Causes that would
    close a cycle are left out. `llm_consulted`: a language model judged them. The links of an
    imported memory stay unchanged. Its events get the `headers`.
    """

    memory: EnrichableMemory
    chunks: Sequence[EmbeddedChunk] | None
    touches: Mapping[UUID, Mapping[str, Any]]
    causes: Sequence[CausalLink] = ()
    llm_consulted: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MentionedNodes:
    """The nodes that a memory mentions, by their names: paths, and labels of entities."""

    files: Mapping[str, UUID]
    entities: Mapping[str, UUID]


class EnrichmentStore:
    """Derived rows, written only while the memory is at the version they derive from."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self.models = EmbeddingModelStore(database)

    async def get_model(self, tenant: int) -> TenantModel:
        """The model for the tenant's vectors, cached for a few seconds."""
        return await self.models.get(tenant)

    async def load(self, tenant: int, memory: UUID) -> EnrichableMemory | None:
        """Loads the memory, or None if it was deleted."""
        return next(iter(await self.load_all(tenant, [memory])), None)

    async def load_all(self, tenant: int, memories: Sequence[UUID]) -> list[EnrichableMemory]:
        """Those of the memories that were not forgotten, in any order."""
        async with self._db.tenant_reader(tenant) as connection:
            return [
                EnrichableMemory(**row)
                for row in await connection.fetch_rows("enrichment_memories", list(memories))
            ]

    async def load_embeddings(
        self, tenant: int, hashes: Sequence[bytes], model: TenantModel
    ) -> dict[bytes, TextEmbedding]:
        """Loads existing embeddings of texts by their hashes."""
        async with self._db.tenant_reader(tenant) as connection:
            connection.vector_table = model.vector_table
            found = await connection.fetch_rows("text_embeddings", list(hashes))
        return {row["hash"]: _parse_embedding(row["v"], row["words"]) for row in found}

    async def ensure_nodes(
        self, tenant: int, mentions: Sequence[MemoryMentions]
    ) -> list[MentionedNodes]:
        """Returns the nodes of files in the memories' projects and of entities; creates missing
        ones.

        A renamed file keeps the node that the memory touches under its old name. Entities belong to
        the memory's project, else to its own scope: a name from a single agent's memory is visible
        to that agent alone.
        """
        encoded = [_encode_mentions(item) for item in mentions]
        if not any(item["files"] or item["entities"] for item in encoded):
            return [MentionedNodes({}, {})] * len(mentions)
        results = await self._db.call("ensure_nodes", tenant, encoded)
        return [
            MentionedNodes(_parse_ids(item["files"]), _parse_ids(item["entities"]))
            for item in results
        ]

    async def find_cause_candidates(
        self,
        tenant: int,
        memories: Sequence[EnrichableMemory],
        nodes: Sequence[Iterable[UUID]],
        limit: int,
    ) -> dict[UUID, list[CauseCandidate]]:
        """Returns up to `limit` possible causes or effects of each memory, from its scope.

        Leaves out memories with an explicit causal edge, and memories later in the list, because
        they will find this one.
        """
        touched = [
            (n, node) for n, memory_nodes in enumerate(nodes, start=1) for node in memory_nodes
        ]
        if not touched and not any(memory.session for memory in memories):
            return {}
        indexes, node_ids = [index for index, _ in touched], [node for _, node in touched]
        columns = [
            [getattr(item, name) for item in memories] for name in ("id", "scope", "session")
        ]
        found: dict[UUID, list[CauseCandidate]] = {}
        async with self._db.snapshot(tenant, own_plans=True) as connection:
            for row in await connection.fetch_rows(
                "cause_candidates", *columns, indexes, node_ids, limit
            ):
                fields = {**row, "files": tuple(row["files"])}
                found.setdefault(fields.pop("of"), []).append(CauseCandidate(**fields))
        return found

    async def write_derived(
        self, tenant: tuple[int, str], derived: Sequence[DerivedData], relatives: int
    ) -> list[list[OutgoingEvent]]:
        """Replaces the derived data of each memory that is still at its version and not done.

        Writes them in order, in one transaction. Links up to `relatives` memories of the scope that
        touch the same nodes. If changes of its files were already applied, requests a staleness
        check. Returns the events to publish, of each.
        """
        encoded = [_encode_derived(tenant, item, relatives) for item in derived]
        chunks_by_memory = [(item.memory, item.chunks or ()) for item in derived]
        results = await self._call_derive(tenant[0], chunks_by_memory, encoded)
        return [
            _build_events(tenant[0], *item) for item in zip(derived, encoded, results, strict=True)
        ]

    async def index_vectors(self, tenant: int, memories: int = 1) -> None:
        """Puts some vectors that a large tenant got into the index that is walked."""
        await self.models.index_vectors(
            tenant, await self.models.get(tenant), memories * INDEX_BATCH
        )

    async def replace_chunks(
        self, tenant: int, memory: EnrichableMemory, chunks: Sequence[EmbeddedChunk]
    ) -> bool:
        """Replaces the chunks of a memory at its version; publishes nothing."""
        [result] = await self._call_derive(tenant, [(memory, chunks)], [_encode_chunks(chunks)])
        return result is not None

    async def replace_links(
        self,
        tenant: int,
        memory: EnrichableMemory,
        touches: Mapping[UUID, Mapping[str, Any]],
        relatives: int,
        causes: Sequence[CausalLink],
    ) -> bool:
        """Replaces touched nodes and causes as `write_derived` does; publishes nothing."""
        encoded = _encode_links(DerivedData(memory, None, touches, causes), relatives)
        [result] = await self._call_derive(tenant, [(memory, ())], [encoded])
        return result is not None

    async def _call_derive(
        self,
        tenant: int,
        chunks_by_memory: Sequence[tuple[EnrichableMemory, Sequence[EmbeddedChunk]]],
        encoded: Sequence[Mapping[str, Any]],
    ) -> list[dict[str, Any] | None]:
        """Returns the result of each write; None if the memory is at another version, or done."""
        chunks = [chunk for _, memory_chunks in chunks_by_memory for chunk in memory_chunks]
        firsts = accumulate(
            (len(memory_chunks) for _, memory_chunks in chunks_by_memory), initial=0
        )
        items = [
            {**item, "memory": str(memory.id), "version": memory.version, "first": first}
            for (memory, _), item, first in zip(chunks_by_memory, encoded, firsts, strict=False)
        ]
        vectors = [HalfVector(chunk.vector) for chunk in chunks]
        words = [
            None if item.words is None else encode_sparse_vector(item.words) for item in chunks
        ]

        async def once() -> list[dict[str, Any] | None]:
            results: list[dict[str, Any] | None] = await self._db.call(
                "derive", tenant, items, vectors, words
            )
            return results

        try:
            return await retry_on_conflict(once, "the memory")
        except asyncpg.PostgresError as error:
            if error.sqlstate != "RV003":
                raise
            hint = "the tenant was switched to another meanwhile"
            raise Unavailable(f"model {chunks[0].model}", hint) from error

    async def list_overdue(
        self, age_seconds: float, limit: int = 50
    ) -> list[tuple[int, str, UUID]]:
        """Lists (tenant, tenant name, memory) whose enrichment is overdue by that time."""
        found = await self._db.fetch_rows(
            "enrichment_overdue", timedelta(seconds=age_seconds), limit
        )
        return [(row["tenant"], row["tenant_name"], row["id"]) for row in found]

    async def note_failure(self, tenant: int, memory: UUID, error: Exception) -> None:
        """Counts a failed attempt to enrich a memory as it is now."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("enrichment_failed", memory, type(error).__name__)


def _build_node(text: str, **fields: str) -> dict[str, str]:
    return {**fields, "id": str(new_id()), "hash": hash_content(text)}


def _encode_mentions(mentions: MemoryMentions) -> dict[str, Any]:
    project = project_of_scope(mentions.memory.scope)
    scope = f"project/{project}" if project else mentions.memory.scope
    files = [
        _build_node(path, path=path, name=path.rsplit("/", 1)[-1].lower())
        for path in mentions.files
    ]
    entities = [
        _build_node(name.key, label=name.label, sort=name.type.value) for name in mentions.entities
    ]
    fields = {"memory": str(mentions.memory.id), "project": project, "scope": scope}
    return {**fields, "files": files, "entities": entities}


def _parse_ids(nodes: Mapping[str, str]) -> dict[str, UUID]:
    return {name: UUID(node) for name, node in nodes.items()}


def _encode_derived(
    tenant: tuple[int, str], derived: DerivedData, relatives: int
) -> dict[str, Any]:
    """Encodes the derived data of a memory, and the events to store with it."""
    encoded: dict[str, Any] = {} if derived.memory.carried else _encode_links(derived, relatives)
    encoded["headers"] = dict(derived.headers)
    if derived.chunks is not None:
        body = {"id": str(derived.memory.id), "version": derived.memory.version}
        subject = memory_subject(tenant[1], "enriched")
        encoded |= _encode_chunks(derived.chunks)
        encoded["enriched"] = {"event": str(new_id()), "subject": subject, "body": body}
    if project := project_of_scope(derived.memory.scope):
        encoded["missed"] = {"project": project, "subject": git_subject(tenant[1], project)}
    return encoded


def _build_events(
    tenant: int, derived: DerivedData, encoded: Mapping[str, Any], result: Mapping[str, Any] | None
) -> list[OutgoingEvent]:
    """The events that were stored with the derived data of a memory."""
    if result is None:
        return []
    event_bodies = (
        [(encoded["enriched"], encoded["enriched"]["body"])] if "enriched" in encoded else []
    )
    if result["missed"]:
        body = {"memory": str(derived.memory.id), "project": encoded["missed"]["project"]}
        event_bodies.append((encoded["missed"] | {"event": result["missed"]}, body))
    return [
        build_outgoing_event(tenant, event["subject"], body, derived.headers, UUID(event["event"]))
        for event, body in event_bodies
    ]


def _encode_links(derived: DerivedData, relatives: int) -> dict[str, Any]:
    """Edges to files and entities, to the memories that touch the same ones, and to causes."""
    return {
        "touches": {str(node): dict(meta) for node, meta in derived.touches.items()},
        "relatives": relatives,
        "causes": [_encode_cause(derived.memory, cause) for cause in derived.causes],
        "llm_consulted": derived.llm_consulted,
    }


def _encode_cause(memory: EnrichableMemory, cause: CausalLink) -> dict[str, Any]:
    evidence = {"confidence": cause.confidence, "evidence": cause.evidence, "rule": cause.rule}
    meta = {**evidence, "from": str(memory.id)}
    return {"src": str(cause.src), "dst": str(cause.dst), "weight": cause.confidence, "meta": meta}


def _encode_chunks(chunks: Sequence[EmbeddedChunk]) -> dict[str, Any]:
    """Encodes the offsets of a memory's chunks, and the model of their vectors."""
    ranges = [
        {"start": chunk.start, "stop": chunk.stop, "hash": chunk.hash.hex()} for chunk in chunks
    ]
    return {"pieces": ranges, "model": chunks[0].model if chunks else None}


def _parse_embedding(vector: HalfVector, words: SparseVector | None) -> TextEmbedding:
    dense = np.asarray(vector.to_numpy(), dtype=np.float32)
    return TextEmbedding(dense, None if words is None else decode_sparse_vector(words))
