"""The slow path of a write: chunks, vectors, anchors, relations, causes. Safe to repeat.

Several memories of a tenant are taken at once; what is derived of each is as if one came after
the other.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from reverie.bus.relay import publish_now
from reverie.domain.anchors import known_of, paths, same_file
from reverie.domain.causes import Cause, Told, infer_causes
from reverie.domain.chunks import chunk
from reverie.domain.entities import Entity, entities_of
from reverie.domain.errors import Unavailable
from reverie.domain.kinds import ANCHORS
from reverie.domain.known_secrets import knowing
from reverie.domain.scopes import project_of
from reverie.inference.asking import Unanswered
from reverie.inference.embedder import Embedder
from reverie.inference.slot import ModelSlot
from reverie.inference.sparse import SparseEncoder, Words
from reverie.ingest.parts import Parts
from reverie.ingest.settings import IngestSettings
from reverie.ingest.told_causes import causes_told, is_worth_asking
from reverie.store.enrichment import Asked, Derived, Enrichment, Known, Piece, Raw, Vector

MAX_ANCHORS = 50
MAX_CANDIDATES = 40


class Deriving(Protocol):
    """What deriving from a memory takes."""

    @property
    def settings(self) -> IngestSettings: ...
    @property
    def model(self) -> ModelSlot: ...
    @property
    def enrichment(self) -> Enrichment: ...


@dataclass(frozen=True)
class Cut:
    """The chunks of a memory: where each begins and stops, its hash, what is known of it.

    `embedder`: what is to make the rest.
    """

    places: Sequence[tuple[int, int, bytes]]
    texts: Mapping[bytes, str]
    known: Mapping[bytes, Known]
    embedder: Embedder


@dataclass(frozen=True)
class Read:
    """A memory as it stands; `cut`: None where nothing is to be embedded."""

    raw: Raw
    cut: Cut | None

    @property
    def due(self) -> bool:
        """Whether anything is to be derived from it."""
        return self.raw.enriched_version < self.raw.version and self.raw.kind not in ANCHORS


@dataclass
class Ready:
    """A memory that the models are done with, and the headers that its events go on with.

    `wrote`: whether anything was written of it; None until then. Where the rest of its group fails
    later on, that is not done again.
    """

    read: Read
    pieces: Sequence[Piece] | None
    headers: Mapping[str, str]
    wrote: bool | None = None

    @property
    def id(self) -> UUID:
        """The memory's."""
        return self.read.raw.id


async def read_all(parts: Deriving, tenant: int, ids: Sequence[UUID]) -> list[Read | None]:
    """The memories as they stand, cut where they are due; None for one that was forgotten."""
    found = {raw.id: Read(raw, None) for raw in await parts.enrichment.read_all(tenant, ids)}
    due = [one.raw for one in found.values() if one.due]
    cuts = await cut_all(parts, tenant, due) or ()
    found |= {raw.id: Read(raw, cut) for raw, cut in zip(due, cuts, strict=False)}
    return [found.get(one) for one in ids]


async def cut_all(
    parts: Deriving, tenant: int, raws: Sequence[Raw], anew: bool = False
) -> list[Cut] | None:
    """The memories in chunks; None where there is no model. `anew` trusts no vector."""
    model = await parts.enrichment.model(tenant)
    try:
        embedder = await parts.model.checked(model.name, model.probe)
    except Unavailable:
        return None
    cut = [_cut(parts, raw.content) for raw in raws]
    hashes = list(dict.fromkeys(hash for _, texts in cut for hash in texts))
    known = {} if anew or not hashes else await parts.enrichment.known(tenant, hashes, model)
    return [Cut(places, texts, known, embedder) for places, texts in cut]


def _cut(parts: Deriving, content: str) -> tuple[list[tuple[int, int, bytes]], dict[bytes, str]]:
    size, overlap = parts.settings.chunk_tokens, parts.settings.chunk_overlap
    spans = chunk(content, parts.model.counter.count, size, overlap)
    texts = [content[one.start : one.stop] for one in spans]
    hashes = [hashlib.sha256(text.encode()).digest() for text in texts]
    places = [(one.start, one.stop, digest) for one, digest in zip(spans, hashes, strict=True)]
    return places, dict(zip(hashes, texts, strict=True))


async def pieces_all(parts: Deriving, cuts: Sequence[Cut | None]) -> list[list[Piece] | None]:
    """The chunks with their vectors; None for what was not cut.

    A tenant that went to another model between two of them: raises ValueError.
    """
    there = [cut for cut in cuts if cut is not None]
    if not there:
        return [None] * len(cuts)
    [embedder] = {cut.embedder for cut in there}
    texts = {hash: text for cut in there for hash, text in cut.texts.items()}
    known = {hash: one for cut in there for hash, one in cut.known.items()}
    vectors, words = await asyncio.gather(
        _vectors(embedder, texts, known), _words(parts.model.sparse, texts, known)
    )
    return [None if cut is None else _pieces(cut, vectors, words) for cut in cuts]


def _pieces(cut: Cut, vectors: Mapping[bytes, Vector], words: Mapping[bytes, Words]) -> list[Piece]:
    return [
        Piece(start, stop, hash, vectors[hash], words.get(hash), cut.embedder.name)
        for start, stop, hash in cut.places
    ]


async def _vectors(
    embedder: Embedder, texts: Mapping[bytes, str], known: Mapping[bytes, Known]
) -> dict[bytes, Vector]:
    """Vectors by hash: those that stand, and the rest embedded in one batch."""
    fresh = {h: text for h, text in texts.items() if h not in known}
    made = await embedder.embed(list(fresh.values())) if fresh else ()
    return {h: one.vector for h, one in known.items()} | dict(zip(fresh, made, strict=True))


async def _words(
    encoder: SparseEncoder | None, texts: Mapping[bytes, str], known: Mapping[bytes, Known]
) -> dict[bytes, Words]:
    """Weighted words by hash, as far as there are any: as `_vectors`."""
    standing = {h: one.words for h, one in known.items() if one.words is not None}
    fresh = {h: text for h, text in texts.items() if h not in standing}
    if encoder is None or not fresh:
        return standing
    return standing | dict(zip(fresh, await encoder.encode(list(fresh.values())), strict=True))


async def write_all(parts: Parts, tenant: tuple[int, str], group: Sequence[Ready]) -> None:
    """Writes what is derived from memories, tells of it, and notes of each whether anything was.

    Without a model the anchors are made, and the memory stays due for its vectors.
    """
    # What one answer of a language model cost is kept before the next is asked for.
    many = 1 if parts.language else max(1, len(group))
    for at in range(0, len(group), many):
        await _write(parts, tenant, group[at : at + many])


async def _write(parts: Parts, tenant: tuple[int, str], group: Sequence[Ready]) -> None:
    number, raws = tenant[0], [one.read.raw for one in group]
    touches = await touches_all(parts, number, raws)
    near = await _near(parts, number, raws, touches)
    derived = []
    for one, raw, nodes, others in zip(group, raws, touches, near, strict=True):
        causes = infer_causes(_self(raw), others)
        told = await _told(parts, number, raw, others, causes)
        whole = [*causes, *(told or [])]
        derived.append(Derived(raw, one.pieces, nodes, whole, told is not None, one.headers))
    events = await parts.enrichment.write_all(tenant, derived, parts.settings.relatives)
    for one, told_of in zip(group, events, strict=True):
        one.wrote = bool(told_of)
    await publish_now(parts.bus, parts.outbox, number, [one for each in events for one in each])
    if any(one.pieces for one in group):
        await parts.enrichment.walk(number, len(group))


async def touches_all(
    parts: Deriving, tenant: int, raws: Sequence[Raw]
) -> list[dict[UUID, dict[str, Any]]]:
    """The nodes that each memory speaks of, made where they are missing, with each edge's meta."""
    named = [Asked(raw, *(((), ()) if raw.carried else _named(raw))) for raw in raws]
    found = await parts.enrichment.nodes_all(tenant, named)
    return [
        {node: {"named": label} for label, node in nodes.entities.items()}
        | {node: known_of(path, raw.git or {}) for path, node in nodes.files.items()}
        for raw, nodes in zip(raws, found, strict=True)
    ]


def _named(raw: Raw) -> tuple[Sequence[str], Sequence[Entity]]:
    """The files and entities that a memory speaks of."""
    git = raw.git or {}
    told = [path for name in ("lines", "symbols") for path in git.get(name, {})]
    files = [*git.get("files", ()), *told, *paths(raw.content)] if project_of(raw.scope) else []
    return _distinct(files)[:MAX_ANCHORS], entities_of(raw.content)[:MAX_ANCHORS]


async def causes_all(
    parts: Deriving, tenant: int, raws: Sequence[Raw], touches: Sequence[Iterable[UUID]]
) -> list[list[Cause]]:
    """What led to each memory and what it led to, as far as the texts say so."""
    near = await _near(parts, tenant, raws, touches)
    return [infer_causes(_self(raw), others) for raw, others in zip(raws, near, strict=True)]


async def _near(
    parts: Deriving, tenant: int, raws: Sequence[Raw], touches: Sequence[Iterable[UUID]]
) -> list[list[Told]]:
    """What may have led to each memory or come of it; nothing for one whose links came with it."""
    asked = {raw.id: nodes for raw, nodes in zip(raws, touches, strict=True) if not raw.carried}
    own = [raw for raw in raws if raw.id in asked]
    near = await parts.enrichment.candidates_all(tenant, own, list(asked.values()), MAX_CANDIDATES)
    return [near.get(raw.id, []) for raw in raws]


async def _told(
    parts: Parts, tenant: int, raw: Raw, others: Sequence[Told], known: Sequence[Cause]
) -> list[Cause] | None:
    """What a language model adds, where one is set; None where it was not asked or not heard."""
    if parts.language is None or not is_worth_asking(_self(raw), others, known):
        return None
    try:
        with knowing(await parts.vault.known(tenant), lambda _: False):
            return await causes_told(parts.language, tenant, _self(raw), others)
    except Unanswered:
        return None


def _self(raw: Raw) -> Told:
    files = tuple((raw.git or {}).get("files", ()))
    at = raw.valid_from or raw.created
    return Told(raw.id, raw.kind, raw.content, at, raw.session, files)


def _distinct(files: Sequence[str]) -> list[str]:
    """Each file once, by the name that came first: what the client said beats what prose says."""
    kept: list[str] = []
    for file in files:
        if not any(file == other or same_file(file, other) for other in kept):
            kept.append(file)
    return kept
