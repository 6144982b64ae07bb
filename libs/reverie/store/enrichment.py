"""What the slow path derives from a memory: chunks, vectors, anchors, relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
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
from reverie.store.races import retried
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
class Asked:
    """A memory, and the paths and entities that it speaks of."""

    memory: Raw
    files: Sequence[str]
    entities: Sequence[Entity]


@dataclass(frozen=True)
class Derived:
    """What was derived from a memory, to be written while it stands at its version.

    `pieces` None leaves the chunks as they are and the memory due. `touches` maps file and entity
    nodes to the edge's metadata; what was touched before under a name and is not among them is
    closed. Causes that would close a cycle are left out; `told` says that a language model was
    heard on them. The links of a carried memory stay as they came. Its events get the `headers`.
    """

    memory: Raw
    pieces: Sequence[Piece] | None
    touches: Mapping[UUID, Mapping[str, Any]]
    causes: Sequence[Cause] = ()
    told: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Nodes:
    """The nodes that a memory speaks of, by their names: paths, and labels of entities."""

    files: Mapping[str, UUID]
    entities: Mapping[str, UUID]


class Enrichment:
    """Derived rows, written only while the memory stands at the version they derive from."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self.models = Models(database)

    async def model(self, tenant: int) -> Pointer:
        """The model that is to make the tenant's vectors, as it stood a few seconds ago."""
        return await self.models.of(tenant)

    async def read(self, tenant: int, memory: UUID) -> Raw | None:
        """The memory, or None where it was forgotten."""
        return next(iter(await self.read_all(tenant, [memory])), None)

    async def read_all(self, tenant: int, memories: Sequence[UUID]) -> list[Raw]:
        """Those of the memories that were not forgotten, in any order."""
        async with self._db.reading(tenant) as t:
            return [Raw(**row) for row in await t.rows("enrich_read", list(memories))]

    async def known(
        self, tenant: int, hashes: Sequence[bytes], model: Pointer
    ) -> dict[bytes, Known]:
        """What the model made already of texts of these hashes."""
        async with self._db.reading(tenant) as t:
            t.vectors = model.vectors
            found = await t.rows("vectors_known", list(hashes))
        return {row["hash"]: _known(row["v"], row["words"]) for row in found}

    async def nodes_all(self, tenant: int, asked: Sequence[Asked]) -> list[Nodes]:
        """The nodes of files in the memories' projects and of entities, made where missing.

        A file that moved since keeps the node that the memory touches under its old name. Entities
        lie in the memory's project, else in its own scope: a name that only one agent's memory
        gives is shown to that agent alone.
        """
        named = [_named(one) for one in asked]
        if not any(one["files"] or one["entities"] for one in named):
            return [Nodes({}, {})] * len(asked)
        made = await self._db.call("anchor_files", tenant, named)
        return [Nodes(_ids(one["files"]), _ids(one["entities"])) for one in made]

    async def candidates_all(
        self, tenant: int, memories: Sequence[Raw], nodes: Sequence[Iterable[UUID]], limit: int
    ) -> dict[UUID, list[Told]]:
        """By memory: those of its scope that may be its causes or effects, `limit` at most.

        None to which a causal edge was told, and none that comes after it in the list, which will
        find it.
        """
        touched = [(n, node) for n, all_of in enumerate(nodes, start=1) for node in all_of]
        if not touched and not any(memory.session for memory in memories):
            return {}
        places, ends = [place for place, _ in touched], [node for _, node in touched]
        asked = [[getattr(one, name) for one in memories] for name in ("id", "scope", "session")]
        found: dict[UUID, list[Told]] = {}
        async with self._db.reading(tenant) as t:
            t.own_plans = True
            for row in await t.rows("cause_candidates", *asked, places, ends, limit):
                told = {**row, "files": tuple(row["files"])}
                found.setdefault(told.pop("of"), []).append(Told(**told))
        return found

    async def write_all(
        self, tenant: tuple[int, str], derived: Sequence[Derived], relatives: int
    ) -> list[list[Outgoing]]:
        """Replaces what is derived of memories, of each that is still at its version and not done.

        One after the other, together or none. Up to `relatives` memories of the scope that touch
        the same nodes are linked. Where changes of its files were applied already, staleness is
        told to look at the memory. Answers the events to publish, of each.
        """
        made = [_made(tenant, one, relatives) for one in derived]
        of = [(one.memory, one.pieces or ()) for one in derived]
        done = await self._derive(tenant[0], of, made)
        return [_events(tenant[0], *one) for one in zip(derived, made, done, strict=True)]

    async def walk(self, tenant: int, memories: int = 1) -> None:
        """Puts some vectors that a large tenant got into the index that is walked."""
        await self.models.walk(tenant, await self.models.of(tenant), memories * WALKED_AT_ONCE)

    async def chunks_anew(self, tenant: int, memory: Raw, pieces: Sequence[Piece]) -> bool:
        """Replaces the chunks of a memory that stands at its version; tells nobody."""
        [done] = await self._derive(tenant, [(memory, pieces)], [_cut(pieces)])
        return done is not None

    async def links_anew(
        self,
        tenant: int,
        memory: Raw,
        touches: Mapping[UUID, Mapping[str, Any]],
        relatives: int,
        causes: Sequence[Cause],
    ) -> bool:
        """Puts what a memory touches, and its causes, as `write_all` does; tells nobody."""
        made = _linked(Derived(memory, None, touches, causes), relatives)
        [done] = await self._derive(tenant, [(memory, ())], [made])
        return done is not None

    async def _derive(
        self,
        tenant: int,
        of: Sequence[tuple[Raw, Sequence[Piece]]],
        made: Sequence[Mapping[str, Any]],
    ) -> list[dict[str, Any] | None]:
        """What each write answers; None where the memory is at another version, or done."""
        pieces = [piece for _, each in of for piece in each]
        firsts = accumulate((len(each) for _, each in of), initial=0)
        asked = [
            {**one, "memory": str(memory.id), "version": memory.version, "first": first}
            for (memory, _), one, first in zip(of, made, firsts, strict=False)
        ]
        vectors = [HalfVector(piece.vector) for piece in pieces]
        words = [None if one.words is None else sparse_vector(one.words) for one in pieces]

        async def once() -> list[dict[str, Any] | None]:
            done: list[dict[str, Any] | None] = await self._db.call(
                "derive", tenant, asked, vectors, words
            )
            return done

        try:
            return await retried(once, "the memory")
        except asyncpg.PostgresError as error:
            if error.sqlstate != "RV003":
                raise
            hint = "the tenant was switched to another meanwhile"
            raise Unavailable(f"model {pieces[0].model}", hint) from error

    async def overdue(self, age_seconds: float, limit: int = 50) -> list[tuple[int, str, UUID]]:
        """(tenant, tenant name, memory) whose slow path is behind for so long."""
        found = await self._db.rows("memories_unenriched", age_seconds, limit)
        return [(row["tenant"], row["tenant_name"], row["id"]) for row in found]


def _new(hashed: str, **fields: str) -> dict[str, str]:
    return {**fields, "id": str(new_id()), "hash": content_hash(hashed)}


def _named(one: Asked) -> dict[str, Any]:
    project = project_of(one.memory.scope)
    scope = f"project/{project}" if project else one.memory.scope
    files = [_new(path, path=path, name=path.rsplit("/", 1)[-1].lower()) for path in one.files]
    entities = [_new(name.key, label=name.label, sort=name.sort.value) for name in one.entities]
    told = {"memory": str(one.memory.id), "project": project, "scope": scope}
    return {**told, "files": files, "entities": entities}


def _ids(nodes: Mapping[str, str]) -> dict[str, UUID]:
    return {name: UUID(node) for name, node in nodes.items()}


def _made(tenant: tuple[int, str], one: Derived, relatives: int) -> dict[str, Any]:
    """What is to be written of a memory, and of the events to store with it."""
    made: dict[str, Any] = {} if one.memory.carried else _linked(one, relatives)
    made["headers"] = dict(one.headers)
    if one.pieces is not None:
        body = {"id": str(one.memory.id), "version": one.memory.version}
        subject = memory_subject(tenant[1], "enriched")
        made |= _cut(one.pieces)
        made["enriched"] = {"event": str(new_id()), "subject": subject, "body": body}
    if project := project_of(one.memory.scope):
        made["missed"] = {"project": project, "subject": git_subject(tenant[1], project)}
    return made


def _events(
    tenant: int, one: Derived, made: Mapping[str, Any], done: Mapping[str, Any] | None
) -> list[Outgoing]:
    """The events that were stored with what was made of a memory."""
    if done is None:
        return []
    told = [(made["enriched"], made["enriched"]["body"])] if "enriched" in made else []
    if done["missed"]:
        body = {"memory": str(one.memory.id), "project": made["missed"]["project"]}
        told.append((made["missed"] | {"event": done["missed"]}, body))
    return [
        outgoing(tenant, event["subject"], body, one.headers, UUID(event["event"]))
        for event, body in told
    ]


def _linked(one: Derived, relatives: int) -> dict[str, Any]:
    """Edges to files and entities, to the memories that touch the same ones, and to causes."""
    return {
        "touches": {str(node): dict(meta) for node, meta in one.touches.items()},
        "relatives": relatives,
        "causes": [_cause(one.memory, cause) for cause in one.causes],
        "told": one.told,
    }


def _cause(memory: Raw, one: Cause) -> dict[str, Any]:
    evidence = {"confidence": one.confidence, "evidence": one.evidence, "rule": one.rule}
    meta = {**evidence, "from": str(memory.id)}
    return {"src": str(one.src), "dst": str(one.dst), "weight": one.confidence, "meta": meta}


def _cut(pieces: Sequence[Piece]) -> dict[str, Any]:
    """Where the chunks of a memory are, and the model that made their vectors."""
    places = [{"start": p.start, "stop": p.stop, "hash": p.hash.hex()} for p in pieces]
    return {"pieces": places, "model": pieces[0].model if pieces else None}


def _known(vector: HalfVector, words: SparseVector | None) -> Known:
    dense = np.asarray(vector.to_numpy(), dtype=np.float32)
    return Known(dense, None if words is None else weighted(words))
