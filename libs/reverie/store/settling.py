"""A memory against those that say alike. Safe to repeat.

Contradictions are linked, a duplicate is merged; of what is merely similar nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from reverie.domain.likeness import MERGES, Likeness, Verdict, judge
from reverie.store.duplicates import Candidate, Duplicates, Settled

CANDIDATES = 8

_Judged = tuple[Candidate, Likeness]


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
    for other, likeness in _against(me, judged):
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


def _against(me: Candidate, judged: Sequence[_Judged]) -> list[_Judged]:
    """Those that contradict a memory. Of a row of other values only the one before it and the one
    after it: what was said before these is in doubt since then."""
    found = [one for one in judged if one[1].verdict is Verdict.CONTRADICTING]
    row = sorted((one for one in found if one[1].valued), key=lambda one: _age(one[0]))
    before = [one for one in row if _age(one[0]) < _age(me)]
    after = [one for one in row if _age(one[0]) > _age(me)]
    return [one for one in found if not one[1].valued or one in (*before[-1:], *after[:1])]


def _judged(me: Candidate, other: Candidate) -> Likeness:
    older, newer = _by_age(me, other)
    return judge(older.said, newer.said, other.cosine)


def _by_age(one: Candidate, other: Candidate) -> tuple[Candidate, Candidate]:
    return (one, other) if _age(one) <= _age(other) else (other, one)


def _age(one: Candidate) -> tuple[datetime, UUID]:
    return one.created, one.id
