"""What the slow path derives from a memory: chunks, vectors, anchors, relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector

from reverie.contracts.events import Outgoing, git_subject, memory_subject, outgoing
from reverie.domain.causes import Cause, Told
from reverie.domain.entities import Entity
from reverie.domain.errors import Unavailable
from reverie.domain.ids import new_id
from reverie.domain.memory import content_hash
from reverie.domain.scopes import project_of
from reverie.store.database import Database
from reverie.store.models import FIRST_MODEL, Models, Pointer
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
        asked = memory.id, project, scope, _files(files), _entities(found)
        made = await self._db.call("anchor_files", tenant, *asked)
        return Nodes(*({k: UUID(v) for k, v in made[one].items()} for one in ("files", "entities")))

    async def candidates(
        self, tenant: int, memory: Raw, nodes: Sequence[UUID], limit: int
    ) -> list[Told]:
        """Memories of the scope that may be its causes or effects, none with a causal edge told."""
        if not nodes and memory.session is None:
            return []
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
        made = {} if memory.carried else _linked(memory, touches, relatives, causes, told)
        events: list[Outgoing] = []
        if pieces is not None:
            body = {"id": str(memory.id), "version": memory.version}
            events = [outgoing(number, memory_subject(name, "enriched"), body, headers)]
            made |= _cut(pieces) | {"enriched": _told(events[0], body)}
        if project := project_of(memory.scope):
            made["missed"] = {"project": project, "subject": git_subject(name, project)}
        done = await self._derive(number, memory, made, pieces or (), headers)
        if done is None:
            return []
        if done["missed"]:
            told_of = {"memory": str(memory.id), "project": project}
            subject, event = made["missed"]["subject"], UUID(done["missed"])
            events.append(outgoing(number, subject, told_of, headers, event))
        return events

    async def walk(self, tenant: int) -> None:
        """Puts some vectors that a large tenant got into the index that is walked."""
        await self._models.walk(tenant, await self._models.of(tenant), WALKED_AT_ONCE)

    async def chunks_anew(self, tenant: int, memory: Raw, pieces: Sequence[Piece]) -> bool:
        """Replaces the chunks of a memory that stands at its version; tells nobody."""
        return await self._derive(tenant, memory, _cut(pieces), pieces) is not None

    async def links_anew(
        self,
        tenant: int,
        memory: Raw,
        touches: Mapping[UUID, Mapping[str, Any]],
        relatives: int,
        causes: Sequence[Cause],
    ) -> bool:
        """Puts what a memory touches, and its causes, as `write` does; tells nobody."""
        made = _linked(memory, touches, relatives, causes)
        return await self._derive(tenant, memory, made) is not None

    async def _derive(
        self,
        tenant: int,
        memory: Raw,
        made: Mapping[str, Any],
        pieces: Sequence[Piece] = (),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, Any] | None:
        """What the write answers; None where the memory is at another version."""
        vectors = [HalfVector(piece.vector) for piece in pieces]
        words = [None if one.words is None else sparse_vector(one.words) for one in pieces]
        asked = tenant, memory.id, memory.version, dict(made), vectors, words, dict(headers)
        try:
            done: dict[str, Any] | None = await self._db.call("derive", *asked)
        except asyncpg.PostgresError as error:
            if error.sqlstate != "RV003":
                raise
            hint = "the tenant was switched to another meanwhile"
            raise Unavailable(f"model {made['model']}", hint) from error
        return done

    async def overdue(self, age_seconds: float, limit: int = 50) -> list[tuple[int, str, UUID]]:
        """(tenant, tenant name, memory) whose slow path is behind for so long."""
        found = await self._db.rows("memories_unenriched", age_seconds, limit)
        return [(row["tenant"], row["tenant_name"], row["id"]) for row in found]


def _files(paths: Sequence[str]) -> list[dict[str, str]]:
    """In an order that is the same for all, so that none waits for each other; so are entities."""
    return [_new(path, path=path, name=path.rsplit("/", 1)[-1].lower()) for path in sorted(paths)]


def _entities(found: Sequence[Entity]) -> list[dict[str, str]]:
    ordered = sorted(found, key=lambda one: one.label)
    return [_new(one.key, label=one.label, sort=one.sort.value) for one in ordered]


def _new(hashed: str, **fields: str) -> dict[str, str]:
    return {**fields, "id": str(new_id()), "hash": content_hash(hashed)}


def _linked(
    memory: Raw,
    touches: Mapping[UUID, Mapping[str, Any]],
    relatives: int,
    causes: Sequence[Cause],
    told: bool = False,
) -> dict[str, Any]:
    """Edges to files and entities, to the memories that touch the same ones, and to causes."""
    return {
        "touches": {str(node): dict(meta) for node, meta in touches.items()},
        "relatives": relatives,
        "causes": [_cause(memory, one) for one in causes],
        "told": told,
    }


def _cause(memory: Raw, one: Cause) -> dict[str, Any]:
    evidence = {"confidence": one.confidence, "evidence": one.evidence, "rule": one.rule}
    meta = {**evidence, "from": str(memory.id)}
    return {"src": str(one.src), "dst": str(one.dst), "weight": one.confidence, "meta": meta}


def _cut(pieces: Sequence[Piece]) -> dict[str, Any]:
    """Where the chunks of a memory are, and the model that made their vectors."""
    places = [{"start": p.start, "stop": p.stop, "hash": p.hash.hex()} for p in pieces]
    return {"pieces": places, "model": pieces[0].model if pieces else None}


def _told(event: Outgoing, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"event": str(event.id), "subject": event.subject, "body": body}


def _known(vector: HalfVector, words: SparseVector | None) -> Known:
    dense = np.asarray(vector.to_numpy(), dtype=np.float32)
    return Known(dense, None if words is None else weighted(words))
