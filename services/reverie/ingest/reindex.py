"""All that is derived from memories and turns, derived anew while the services go on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from reverie.domain.said import memory_words, turn_words
from reverie.inference.slot import ModelSlot
from reverie.ingest.enrich import causes_all, cut_all, pieces_all, touches_all
from reverie.ingest.settings import IngestSettings
from reverie.store.enrichment import Enrichment, Raw
from reverie.store.reindex import Reindex

BATCH = 200
TURN_BATCH = 2000

Told = Callable[[str, int, int], None]
"""Told of a part how much of it is done, of how many."""


class What(StrEnum):
    """What may be derived anew."""

    WORDS = "words"
    VECTORS = "vectors"
    ANCHORS = "anchors"


@dataclass(frozen=True)
class Tools:
    """What rebuilding takes."""

    settings: IngestSettings
    model: ModelSlot
    enrichment: Enrichment
    reindex: Reindex


async def rebuild(tools: Tools, tenant: int, what: Sequence[What], told: Told) -> dict[str, int]:
    """Derives anew, each part from where it was broken off; answers how many it went through.

    Safe to repeat and to break off. What the slow path has yet to reach is derived too, and stays
    due there: its event is still to be told.
    Raises `Unavailable` where vectors are wanted and there is no model.
    """
    done: dict[str, int] = {}
    if What.WORDS in what:
        done["words"] = await _words(tools, tenant, told)
        done["turns"] = await _turns(tools, tenant, told)
        await tools.reindex.sweep_words(tenant)
    if What.ANCHORS in what:
        await tools.reindex.anchors(tenant)
        done["anchors"] = await _each(tools, tenant, "anchors", _anchors, told)
    if What.VECTORS in what:
        await tools.model.opened((await tools.enrichment.model(tenant)).name)
        done["vectors"] = await _each(tools, tenant, "vectors", _vectors, told)
        await tools.reindex.sweep_vectors(tenant)
    return done


async def _words(tools: Tools, tenant: int, told: Told) -> int:
    total, done = (await tools.reindex.counts(tenant))[0], 0
    async for ids, texts in _memory_texts(tools, tenant):
        await tools.reindex.memory_words(tenant, texts)
        await tools.reindex.came(tenant, "words", ids[-1])
        done += len(ids)
        told("words", done, total)
    await tools.reindex.came(tenant, "words", None)
    return done


async def _memory_texts(
    tools: Tools, tenant: int
) -> AsyncIterator[tuple[list[UUID], dict[str, str]]]:
    after = await tools.reindex.place(tenant, "words")
    while found := await tools.reindex.memories(tenant, after, BATCH):
        after = found[-1].id
        texts = {str(one.id): memory_words(one.key, one.content, one.tags) for one in found}
        yield [one.id for one in found], texts


async def _turns(tools: Tools, tenant: int, told: Told) -> int:
    total, done = (await tools.reindex.counts(tenant))[1], 0
    after = await tools.reindex.place(tenant, "turns")
    while found := await tools.reindex.turns(tenant, after, TURN_BATCH):
        after = found[-1].id
        texts = {str(one.id): turn_words(one.role, one.content) for one in found}
        await tools.reindex.turn_words(tenant, texts)
        await tools.reindex.came(tenant, "turns", after)
        done += len(found)
        told("turns", done, total)
    await tools.reindex.came(tenant, "turns", None)
    return done


async def _each(
    tools: Tools,
    tenant: int,
    part: str,
    derive: Callable[[Tools, int, Raw], Awaitable[None]],
    told: Told,
) -> int:
    """Derives from one memory after the other; a change of one meanwhile is the slow path's."""
    total, done = (await tools.reindex.counts(tenant))[0], 0
    after = await tools.reindex.place(tenant, part)
    while found := await tools.reindex.memories(tenant, after, BATCH):
        for one in found:
            raw = await tools.enrichment.read(tenant, one.id)
            if raw is not None:
                await derive(tools, tenant, raw)
        after = found[-1].id
        await tools.reindex.came(tenant, part, after)
        done += len(found)
        told(part, done, total)
    await tools.reindex.came(tenant, part, None)
    return done


async def _vectors(tools: Tools, tenant: int, raw: Raw) -> None:
    cut = await cut_all(tools, tenant, [raw], anew=True)
    for pieces in await pieces_all(tools, cut or []):
        await tools.enrichment.chunks_anew(tenant, raw, pieces or [])


async def _anchors(tools: Tools, tenant: int, raw: Raw) -> None:
    [touches] = await touches_all(tools, tenant, [raw])
    [causes] = await causes_all(tools, tenant, [raw], [touches])
    relatives = tools.settings.relatives
    await tools.enrichment.links_anew(tenant, raw, touches, relatives, causes)
