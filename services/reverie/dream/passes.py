"""The passes of tending: each takes a page of memories, in the order of ids, and tends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

from reverie.bus.relay import publish_now
from reverie.domain.clean import without_secrets
from reverie.domain.confidence import FLOOR, has_faded
from reverie.domain.kinds import ANCHORS, TREATMENT
from reverie.domain.known_secrets import knowing
from reverie.domain.pagerank import ranked
from reverie.domain.promotion import convention
from reverie.domain.topics import topics
from reverie.dream.parts import Parts
from reverie.dream.reflect import propose_vault, reflect
from reverie.dream.review import review
from reverie.dream.work import Page, Work
from reverie.runtime.telemetry import inject_headers
from reverie.store.settling import settle

FADING = [kind.value for kind, how in TREATMENT.items() if how.decays and kind not in ANCHORS]
PAGE = 500
FEW = 20
USE_DAYS = 30


Step = Callable[[Parts, Work, UUID], Awaitable[Page]]


async def promote(parts: Parts, work: Work, above: UUID) -> Page:
    """Makes conventions of what proved itself: what is in the way of some stops no others."""
    garden = work.garden
    found = await parts.tending.promotable(garden, above, parts.settings.promote_sessions, PAGE)
    with knowing(await parts.known_of(garden.tenant), lambda _: False):
        new = [without_secrets(convention(memory, evidence)) for memory, evidence in found]
    for (memory, evidence), one in zip(found, new, strict=True):
        if await parts.tending.write(garden, one):
            work.did("promoted", memory.id, evidence.reason(), memory.kind.value)
    return _page([memory.id for memory, _ in found], PAGE)


async def archive(parts: Parts, work: Work, above: UUID) -> Page:
    """Archives what faded down to the floor."""
    garden, settings = work.garden, parts.settings
    why = f"its confidence fell to {FLOOR}"
    seen = datetime.now(UTC)
    page = await parts.tending.fading(garden, above, FADING, settings.archive_after_days, PAGE)
    faded = {one.id: one for one in page if has_faded(one, seen, settings.half_lives)}
    if faded:
        for one in await parts.tending.archive(garden, list(faded.values()), seen, why):
            work.did("archived", one, why, faded[one].kind.value)
    return _page([one.id for one in page], PAGE)


async def collect(parts: Parts, work: Work, above: UUID) -> Page:
    """Puts away files and entities that nothing touches any more."""
    days = parts.settings.archive_after_days
    nodes = await parts.tending.anchors(work.garden, above, PAGE)
    for node, outcome in await parts.tending.collect(work.garden.tenant, nodes, days):
        what = "collected" if outcome == "archived" else "restored"
        work.did(what, node, "nothing touches it" if what == "collected" else "it is touched again")
    return _page(nodes, PAGE)


async def liken(parts: Parts, work: Work, above: UUID) -> Page:
    """Merges near-duplicates and links contradictions that the slow path did not meet."""
    garden = work.garden
    ids = await parts.tending.memories(garden, above, FEW)
    for memory in ids:
        done = await settle(
            parts.duplicates, (garden.tenant, garden.tenant_name), memory, inject_headers()
        )
        for one in done:
            work.did(one.what, one.settled.id, one.why)
        events = [one.settled.event for one in done]
        await publish_now(parts.bus, parts.outbox, garden.tenant, events)
    return _page(ids, FEW)


async def cluster(parts: Parts, work: Work, above: UUID) -> Page:
    """Makes a topic of what the memories of a project keep being about, and ends what it was."""
    tenant, looked = work.garden.tenant, 0
    scopes = await parts.tending.topic_scopes(work.garden, above, FEW)
    for scope, _ in scopes:
        found = await asyncio.to_thread(topics, await parts.tending.centres(tenant, scope))
        looked += sum(len(one.members) for one in found)
        for one in await parts.tending.put_topics(tenant, scope, found):
            work.did("topics", one.id, f"{one.members} memories are about {one.name}")
    last = scopes[-1][1] if len(scopes) == FEW else None
    return Page(looked, last)


async def centre(parts: Parts, work: Work, _: UUID) -> Page:
    """Computes anew how much the graph leans on each memory, where edges changed since."""
    standing = await parts.ranks.standing(work.garden.tenant)
    if standing.changes:
        ranks = await asyncio.to_thread(ranked, standing.edges)
        await parts.ranks.put(work.garden.tenant, ranks, standing.changes)
        work.counts["ranked"] = len(ranks.nodes)
    return Page(0, None)


async def forget(parts: Parts, work: Work, _: UUID) -> Page:
    """Forgets which sessions used what, long ago."""
    await parts.tending.forget_uses(work.garden.tenant, USE_DAYS)
    return Page(0, None)


PASSES: dict[str, Step] = {
    "promote": promote,
    "archive": archive,
    "collect": collect,
    "liken": liken,
    "cluster": cluster,
    "centre": centre,
    "forget": forget,
}

REVIEWING: dict[str, Step] = {"review": review}
REFLECTING: dict[str, Step] = {"propose": propose_vault, "reflect": reflect}
"""Both only where they are set."""


def _page(ids: list[UUID], full: int) -> Page:
    return Page(len(ids), ids[-1] if len(ids) == full else None)
