"""A memory against those that say alike. Safe to repeat.

Contradictions are linked, a duplicate is merged; of what is merely similar nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from reverie.domain.likeness import MERGES, Likeness, Verdict, judge
from reverie.store.duplicates import Candidate, Duplicates, Settled

CANDIDATES = 8


@dataclass(frozen=True)
class Done:
    """One thing that was settled, what it is called (merged, contradicted), and why."""

    what: str
    why: str
    settled: Settled


async def settle(
    duplicates: Duplicates, tenant: tuple[int, str], memory: UUID, headers: Mapping[str, str]
) -> list[Done]:
    """Settles one memory with the others of its scope, once all is derived of it."""
    return await settle_all(duplicates, tenant, {memory: headers})


async def settle_all(
    duplicates: Duplicates, tenant: tuple[int, str], memories: Mapping[UUID, Mapping[str, str]]
) -> list[Done]:
    """Settles one after the other, by memory: the headers of its events."""
    left, done = list(memories), list[Done]()
    while left:
        mine = await duplicates.read_all(tenant[0], left)
        others = await duplicates.candidates_all(tenant[0], mine, CANDIDATES)
        left = []
        for place, (me, near) in enumerate(zip(mine, others, strict=True), start=1):
            if made := await _settled(duplicates, tenant, me, near, memories[me.id]):
                done += made
                # What was read of the others need not stand any more.
                left = [one.id for one in mine[place:]]
                break
    return done


async def _settled(
    duplicates: Duplicates,
    tenant: tuple[int, str],
    me: Candidate,
    others: Sequence[Candidate],
    headers: Mapping[str, str],
) -> list[Done]:
    """Contradictions first: a merge may end the memory. One merge at most, the nearest.

    Two that were carried in were judged where they come from.
    """
    judged = [(o, _judged(me, o)) for o in others if not (me.carried and o.carried)]
    done: list[Done] = []
    for other, likeness in judged:
        if likeness.verdict is Verdict.CONTRADICTING:
            made = await duplicates.contradict(tenant, *_by_age(me, other), likeness, headers)
            done += [Done("contradicted", likeness.reason, made)] if made else []
            if made and made.id == me.id:
                me = replace(me, version=made.version)
    for other, likeness in judged:
        if likeness.verdict in MERGES:
            made = await duplicates.merge(tenant, *_by_age(me, other), likeness, headers)
            if made:
                return [*done, Done("merged", likeness.reason, made)]
    return done


def _judged(me: Candidate, other: Candidate) -> Likeness:
    older, newer = _by_age(me, other)
    return judge(older.said, newer.said, other.cosine)


def _by_age(one: Candidate, other: Candidate) -> tuple[Candidate, Candidate]:
    if (one.created, one.id) <= (other.created, other.id):
        return one, other
    return other, one
