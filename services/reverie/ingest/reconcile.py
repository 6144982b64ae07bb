"""The end of the slow path: a memory against those that say alike. Safe to repeat.

Contradictions are linked, a duplicate is merged; of what is merely similar nothing is changed.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from reverie.bus.relay import publish_now
from reverie.domain.likeness import MERGES, Likeness, Verdict, judge
from reverie.ingest.parts import Parts
from reverie.runtime.telemetry import inject_headers, span
from reverie.store.duplicates import Candidate, Settled

CANDIDATES = 8


async def reconcile(parts: Parts, tenant: int, tenant_name: str, memory: UUID) -> None:
    """Settles one memory with the others of its scope, once all is derived of it."""
    found = await parts.duplicates.read(tenant, memory)
    if found is None:
        return
    with span("reconcile", memory=str(memory)):
        others = await parts.duplicates.candidates(tenant, found, CANDIDATES)
        done = await _settle(parts, (tenant, tenant_name), found, others)
        await publish_now(parts.bus, parts.outbox, tenant, [one.event for one in done])


async def _settle(
    parts: Parts, tenant: tuple[int, str], me: Candidate, others: list[Candidate]
) -> list[Settled]:
    """Contradictions first: a merge may end the memory. One merge at most, the nearest.

    Two that were carried in were judged where they come from.
    """
    judged = [(o, _judged(me, o)) for o in others if not (me.carried and o.carried)]
    done: list[Settled] = []
    for other, likeness in judged:
        if likeness.verdict is Verdict.CONTRADICTING:
            pair = _by_age(me, other)
            made = await parts.duplicates.contradict(tenant, *pair, likeness, inject_headers())
            done += [made] if made else []
            if made and made.id == me.id:
                me = replace(me, version=made.version)
    for other, likeness in judged:
        if likeness.verdict in MERGES:
            pair = _by_age(me, other)
            made = await parts.duplicates.merge(tenant, *pair, likeness, inject_headers())
            if made:
                return [*done, made]
    return done


def _judged(me: Candidate, other: Candidate) -> Likeness:
    older, newer = _by_age(me, other)
    return judge(older.said, newer.said, other.cosine)


def _by_age(one: Candidate, other: Candidate) -> tuple[Candidate, Candidate]:
    if (one.created, one.id) <= (other.created, other.id):
        return one, other
    return other, one
