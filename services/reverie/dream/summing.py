"""The summary of a scope after a dream: what it rested on, less what went, with what changed."""

from __future__ import annotations

from uuid import UUID

from reverie.domain.kinds import Kind
from reverie.domain.memory import Memory
from reverie.domain.redaction import redact
from reverie.domain.summary import Told, needs_whole, summarise
from reverie.dream.keeping import held
from reverie.dream.parts import Parts
from reverie.dream.sessions import knowing_of
from reverie.inference.tokens import TokenCounter
from reverie.store.dreams import Lease
from reverie.store.summaries import Standing


async def summarise_scope(parts: Parts, lease: Lease, run: UUID) -> None:
    """Brings the summary up to date. Done again it changes nothing."""
    before = await parts.summaries.standing(lease)
    with await knowing_of(parts, lease):
        told = await _told(parts, lease, run, before)
        text = redact(told.text).text
    if text or before.rests_on:
        tokens = _counter(parts).count(text)
        held(await parts.summaries.put(lease, run, text, tokens, told, before.now))


async def _told(parts: Parts, lease: Lease, run: UUID, before: Standing) -> Told[Memory]:
    """From what changed; from all where that is not known or what was cut off may come in."""
    limit, cap = parts.settings.summary_memories, parts.settings.summary_tokens
    count = _counter(parts).count
    if before.seen:
        known = await parts.summaries.changed(lease, run, before, before.seen, limit)
        told = summarise(known, count, cap)
        anew = any(_weighed_anew(one, before) for one in known)
        many = len(known) >= limit
        if not many and not needs_whole(before.complete, anew, count(told.text), cap):
            return Told(told.text, told.rests_on, told.complete and before.complete)
    known = await parts.summaries.known(lease, limit)
    told = summarise(known, count, cap)
    return Told(told.text, told.rests_on, told.complete and len(known) < limit)


def _weighed_anew(one: Memory, before: Standing) -> bool:
    # A session is told again as it goes on; it is weighed by how new it is alone.
    return one.kind is not Kind.SESSION and before.rests_on.get(one.id, one.version) != one.version


def _counter(parts: Parts) -> TokenCounter:
    return parts.model.counter if parts.model else parts.counter
