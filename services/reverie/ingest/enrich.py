"""The slow path of a write: chunks, vectors, anchors, relations, causes. Safe to repeat."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from reverie.bus.relay import publish_now
from reverie.domain.anchors import known_of, paths, same_file
from reverie.domain.causes import Cause, Told, infer_causes
from reverie.domain.chunks import chunk
from reverie.domain.entities import entities_of
from reverie.domain.errors import Unavailable
from reverie.domain.kinds import ANCHORS
from reverie.domain.known_secrets import knowing
from reverie.domain.scopes import project_of
from reverie.inference.asking import Unanswered
from reverie.inference.embedder import Embedder
from reverie.inference.slot import ModelSlot
from reverie.inference.sparse import SparseEncoder, Words
from reverie.ingest.order import Place
from reverie.ingest.parts import Parts
from reverie.ingest.settings import IngestSettings
from reverie.ingest.told_causes import causes_told, is_worth_asking
from reverie.runtime.telemetry import inject_headers, span
from reverie.store.enrichment import Enrichment, Known, Piece, Raw, Vector

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


async def enrich(parts: Parts, tenant: int, raw: Raw, place: Place) -> bool:
    """Derives what is missing of a memory; says whether anything was written.

    Models work ahead; from its `place` on a memory sees all that those before it left.
    Without a model the anchors are made, and the memory stays due for its vectors.
    """
    if raw.enriched_version >= raw.version or raw.kind in ANCHORS:
        return False
    with span("enrich", memory=str(raw.id)):
        pieces = await pieces_of(parts, tenant, raw)
        await place.turn()
        touches = {} if raw.carried else await touches_of(parts, tenant, raw)
        causes = [] if raw.carried else await causes_of(parts, tenant, raw, list(touches))
        told = [] if raw.carried else await _told(parts, tenant, raw, list(touches), causes)
        events = await parts.enrichment.write(
            (tenant, raw.tenant_name),
            raw,
            pieces,
            touches,
            parts.settings.relatives,
            inject_headers(),
            [*causes, *(told or [])],
            told is not None,
        )
        await publish_now(parts.bus, parts.outbox, tenant, events)
        if pieces:
            await parts.enrichment.walk(tenant)
    return bool(events)


async def pieces_of(
    parts: Deriving, tenant: int, raw: Raw, anew: bool = False
) -> list[Piece] | None:
    """The chunks with their vectors; None where there is no model. `anew` trusts no vector."""
    model = await parts.enrichment.model(tenant)
    try:
        embedder = await parts.model.checked(model.name, model.probe)
    except Unavailable:
        return None
    count = parts.model.counter.count
    size, overlap = parts.settings.chunk_tokens, parts.settings.chunk_overlap
    spans = chunk(raw.content, count, size, overlap)
    texts = [raw.content[one.start : one.stop] for one in spans]
    hashes = [hashlib.sha256(text.encode()).digest() for text in texts]
    known = {} if anew else await parts.enrichment.known(tenant, hashes, model)
    by_hash = dict(zip(hashes, texts, strict=True))
    vectors, words = await asyncio.gather(
        _vectors(embedder, by_hash, known), _words(parts.model.sparse, by_hash, known)
    )
    return [
        Piece(one.start, one.stop, digest, vectors[digest], words.get(digest), model.name)
        for one, digest in zip(spans, hashes, strict=True)
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


async def touches_of(parts: Deriving, tenant: int, raw: Raw) -> dict[UUID, dict[str, Any]]:
    """The nodes that the memory speaks of, made where they are missing, with each edge's meta."""
    git = raw.git or {}
    told = [path for name in ("lines", "symbols") for path in git.get(name, {})]
    named = [*git.get("files", ()), *told, *paths(raw.content)]
    files = _distinct(named)[:MAX_ANCHORS] if project_of(raw.scope) else []
    found = entities_of(raw.content)[:MAX_ANCHORS]
    nodes = await parts.enrichment.nodes(tenant, raw, files, found)
    entities = {node: {"named": label} for label, node in nodes.entities.items()}
    return entities | {node: known_of(path, git) for path, node in nodes.files.items()}


async def causes_of(parts: Deriving, tenant: int, raw: Raw, nodes: Sequence[UUID]) -> list[Cause]:
    """What led to the memory and what it led to, as far as the texts say so."""
    others = await parts.enrichment.candidates(tenant, raw, nodes, MAX_CANDIDATES)
    return infer_causes(_self(raw), others)


async def _told(
    parts: Parts, tenant: int, raw: Raw, nodes: Sequence[UUID], known: Sequence[Cause]
) -> list[Cause] | None:
    """What a language model adds, where one is set; None where it was not asked or not heard."""
    if parts.language is None:
        return None
    others = await parts.enrichment.candidates(tenant, raw, nodes, MAX_CANDIDATES)
    if not is_worth_asking(_self(raw), others, known):
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
