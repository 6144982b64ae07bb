"""What the slow path derives from a memory: chunks, vectors, anchors, relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector

from reverie.contracts.events import Outgoing, git_subject, memory_subject, outgoing
from reverie.domain.causes import Cause, Told
from reverie.domain.entities import Entity
from reverie.domain.errors import Unavailable
from reverie.domain.ids import new_id
from reverie.domain.kinds import Kind
from reverie.domain.memory import content_hash
from reverie.domain.scopes import project_of
from reverie.store.database import Database, Tenant
from reverie.store.models import FIRST_MODEL, Models, Pointer, pointed
from reverie.store.weighted import sparse_vector, weighted

WALKED_AT_ONCE = 32
"""Vectors put into the index that is walked with each memory: more than one has, to catch up."""

Vector = NDArray[np.float32]
Words = Mapping[int, float]


@dataclass(frozen=True)
class Raw:
    """A memory as the slow path reads it. `carried`: its links came with a file."""

    id: UUID
    version: int
    enriched_version: int
    scope: str
    kind: str
    content: str
    session: UUID | None
    agent: str | None
    git: dict[str, Any] | None
    created: datetime
    valid_from: datetime | None
    carried: bool = False
    tenant_name: str = ""


@dataclass(frozen=True)
class Piece:
    """A chunk of a memory: offsets into its content, SHA-256 of its text, what models made of it.

    `words`: weighted words of a sparse model, by number; None where none has read it.
    """

    start: int
    stop: int
    hash: bytes
    vector: Vector
    words: Words | None = None
    model: str = FIRST_MODEL


@dataclass(frozen=True)
class Known:
    """What models made of a text."""

    vector: Vector
    words: Words | None = None


@dataclass(frozen=True)
class Nodes:
    """The nodes that a memory speaks of, by their names: paths, and labels of entities."""

    files: Mapping[str, UUID]
    entities: Mapping[str, UUID]


class Enrichment:
    """Derived rows, written only while the memory stands at the version they derive from."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._models = Models(database)

    async def model(self, tenant: int) -> Pointer:
        """The model that is to make the tenant's vectors, as it stood a few seconds ago."""
        return await self._models.of(tenant)

    async def read(self, tenant: int, memory: UUID) -> Raw | None:
        """The memory, or None where it was forgotten."""
        async with self._db.reading(tenant) as t:
            row = await t.row("enrich_read", memory)
        return Raw(**row) if row else None

    async def known(
        self, tenant: int, hashes: Sequence[bytes], model: Pointer
    ) -> dict[bytes, Known]:
        """What the model made already of texts of these hashes."""
        async with self._db.reading(tenant) as t:
            t.vectors = model.vectors
            found = await t.rows("vectors_known", list(hashes))
        return {row["hash"]: _known(row["v"], row["words"]) for row in found}

    async def nodes(
        self, tenant: int, memory: Raw, files: Sequence[str], found: Sequence[Entity]
    ) -> Nodes:
        """The nodes of files in the memory's project and of entities, made where they are missing.

        A file that moved since keeps the node that the memory touches under its old name. Entities
        lie in the memory's project, else in its own scope: a name that only one agent's memory
        gives is shown to that agent alone.
        """
        if not files and not found:
            return Nodes({}, {})
        project = project_of(memory.scope)
        scope = f"project/{project}" if project else memory.scope
        async with self._db.tenant(tenant, flushed=False) as t:
            kept = await _standing(t, memory.id, files)
            made = await _files(t, project or "", sorted(set(files) - set(kept)))
            return Nodes(kept | made, await _entities(t, scope, found))

    async def candidates(
        self, tenant: int, memory: Raw, nodes: Sequence[UUID], limit: int
    ) -> list[Told]:
        """Memories of the scope that may be its causes or effects, none with a causal edge told."""
        async with self._db.reading(tenant) as t:
            near = (memory.id, memory.scope, list(nodes), memory.session, limit)
            found = await t.rows("cause_candidates", *near)
        return [Told(**{**row, "files": tuple(row["files"])}) for row in found]

    async def write(
        self,
        tenant: tuple[int, str],
        memory: Raw,
        pieces: Sequence[Piece] | None,
        touches: Mapping[UUID, Mapping[str, Any]],
        relatives: int,
        headers: Mapping[str, str],
        causes: Sequence[Cause] = (),
        told: bool = False,
    ) -> list[Outgoing]:
        """Replaces what is derived, if the memory is still at that version.

        `pieces` None leaves the chunks as they are and the memory due. `touches` maps file and
        entity nodes to the edge's metadata; what was touched before under a name and is not
        among them is closed. Up to `relatives` memories of the scope that touch the same nodes
        are linked. Causes that would close a cycle are left out; `told` says that a
        language model was heard on them. The links of a carried memory stay as they came.
        Where changes of its files were applied already, staleness is told to look at the memory.
        Answers the events to publish.
        """
        number, name = tenant
        async with self._db.tenant(number, flushed=False) as t:
            if await t.row("enrich_lock", memory.id, memory.version) is None:
                return []
            if not memory.carried:
                await _link(t, memory, touches, relatives)
            events = [] if pieces is None else await _replace(t, name, memory, pieces, headers)
            events += await _missed(t, name, memory, headers)
            # Last, for it takes the lock that all causal edges of a tenant take.
            if not memory.carried:
                await _explain(t, memory, causes, told)
            return events

    async def walk(self, tenant: int) -> None:
        """Puts some vectors that a large tenant got into the index that is walked."""
        await self._models.walk(tenant, await self._models.of(tenant), WALKED_AT_ONCE)

    async def chunks_anew(self, tenant: int, memory: Raw, pieces: Sequence[Piece]) -> bool:
        """Replaces the chunks of a memory that stands at its version; tells nobody."""
        async with self._db.tenant(tenant) as t:
            if await t.row("enrich_lock", memory.id, memory.version) is None:
                return False
            await _put_chunks(t, memory, pieces)
        return True

    async def links_anew(
        self,
        tenant: int,
        memory: Raw,
        touches: Mapping[UUID, Mapping[str, Any]],
        relatives: int,
        causes: Sequence[Cause],
    ) -> bool:
        """Puts what a memory touches, and its causes, as `write` does; tells nobody."""
        async with self._db.tenant(tenant) as t:
            if await t.row("enrich_lock", memory.id, memory.version) is None:
                return False
            await _link(t, memory, touches, relatives)
            await _explain(t, memory, causes)
        return True

    async def overdue(self, age_seconds: float, limit: int = 50) -> list[tuple[int, str, UUID]]:
        """(tenant, tenant name, memory) whose slow path is behind for so long."""
        found = await self._db.rows("memories_unenriched", age_seconds, limit)
        return [(row["tenant"], row["tenant_name"], row["id"]) for row in found]


async def _standing(t: Tenant, memory: UUID, files: Sequence[str]) -> dict[str, UUID]:
    """The nodes that a memory touches already by some of these names."""
    found = await t.rows("touches_standing", memory, list(files)) if files else []
    return {row["named"]: row["node"] for row in found}


async def _files(t: Tenant, project: str, paths: Sequence[str]) -> dict[str, UUID]:
    """Made in the order given, which is the same for all, so that none waits for each other."""
    names = [path.rsplit("/", 1)[-1].lower() for path in paths]
    hashes = [bytes.fromhex(content_hash(path)) for path in paths]
    new = [new_id() for _ in paths]
    made = await t.rows("anchor_files", project, list(paths), names, new, hashes) if paths else []
    return {row["named"]: row["node"] for row in made if row["node"] is not None}


async def _entities(t: Tenant, scope: str, found: Sequence[Entity]) -> dict[str, UUID]:
    ordered = sorted(found, key=lambda one: one.label)
    labels = [one.label for one in ordered]
    sorts = [one.sort.value for one in ordered]
    hashes = [bytes.fromhex(content_hash(one.key)) for one in ordered]
    new = [new_id() for _ in ordered]
    made = await t.rows("anchor_entities", scope, labels, sorts, new, hashes) if found else []
    return {row["named"]: row["node"] for row in made if row["node"] is not None}


async def _link(
    t: Tenant, memory: Raw, touches: Mapping[UUID, Mapping[str, Any]], relatives: int
) -> None:
    """Edges to files and entities, and to the memories that touch the same ones."""
    await t.rows("touches_close", memory.id, list(touches))
    edges = [(new_id(), memory.id, "touches", n, 1.0, dict(m)) for n, m in touches.items()]
    await t.many("edge_put", edges)
    near = await t.rows("relatives", memory.id, memory.scope, relatives)
    weights = sorted((row["id"], min(1.0, 0.3 + 0.2 * row["shared"])) for row in near)
    await t.many(
        "edge_put",
        [(new_id(), *_ends(memory.id, other), weight, {}) for other, weight in weights],
    )


async def _replace(
    t: Tenant, name: str, memory: Raw, pieces: Sequence[Piece], headers: Mapping[str, str]
) -> list[Outgoing]:
    """The chunks anew, and the event that the memory is enriched."""
    await _put_chunks(t, memory, pieces)
    subject = memory_subject(name, "enriched")
    body = {"id": str(memory.id), "version": memory.version}
    event = outgoing(t.id, subject, body, headers)
    told = event.id, subject, body, dict(headers)
    await t.rows("enrich_done", memory.id, memory.version, *told)
    return [event]


async def _put_chunks(t: Tenant, memory: Raw, pieces: Sequence[Piece]) -> None:
    model = (await pointed(t)).name
    if any(piece.model != model for piece in pieces):
        raise Unavailable(f"model {model}", "the tenant was switched to it meanwhile")
    await t.rows("chunk_drop", memory.id)
    await t.many("chunk_add", [_chunk(memory.id, n, p) for n, p in enumerate(pieces)])


async def _explain(t: Tenant, memory: Raw, causes: Sequence[Cause], told: bool = False) -> None:
    """The causes inferred from a memory, and the session that it was learned in. Those that a
    language model told stay until it is heard again."""
    ends = [c.src for c in causes], [c.dst for c in causes]
    await t.rows("causes_close", memory.id, *ends, told)
    for c in causes:
        meta = {"confidence": c.confidence, "evidence": c.evidence, "rule": c.rule}
        meta["from"] = str(memory.id)
        await t.value("cause_put", new_id(), c.src, "led_to", c.dst, c.confidence, meta)
    node = await t.value("session_node", memory.session, memory.id) if memory.session else None
    if node is not None and memory.kind != Kind.SESSION:
        await t.value(
            "cause_put", new_id(), memory.id, "learned_in", node, 1.0, {"rule": "session"}
        )


async def _missed(t: Tenant, name: str, memory: Raw, headers: Mapping[str, str]) -> list[Outgoing]:
    """The event that the memory's anchors came after changes that it may have missed."""
    project = project_of(memory.scope)
    if project is None:
        return []
    subject = git_subject(name, project)
    event = await t.value("missed", memory.id, project, subject, dict(headers))
    body = {"memory": str(memory.id), "project": project}
    return [outgoing(t.id, subject, body, headers, event)] if event else []


def _chunk(memory: UUID, ord_: int, piece: Piece) -> tuple[object, ...]:
    words = None if piece.words is None else sparse_vector(piece.words)
    return memory, ord_, piece.start, piece.stop, piece.hash, HalfVector(piece.vector), words


def _known(vector: HalfVector, words: SparseVector | None) -> Known:
    dense = np.asarray(vector.to_numpy(), dtype=np.float32)
    return Known(dense, None if words is None else weighted(words))


def _ends(one: UUID, other: UUID) -> tuple[UUID, str, UUID]:
    """A relation has no direction: the newer points to the older, so that it stands once."""
    return max(one, other), "relates_to", min(one, other)
