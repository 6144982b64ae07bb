"""How an answer came about, told for keeping: texts without secrets, the rest ids and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from time import perf_counter
from typing import Any
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.ids import new_id
from reverie.domain.question import Reading, read
from reverie.domain.ranking import Found
from reverie.domain.redaction import redact, redact_value
from reverie.domain.words import query_text
from reverie.recall.hits import Cut
from reverie.recall.parts import Parts
from reverie.recall.rank import recall
from reverie.recall.story import Answer, Question, Story
from reverie.runtime.telemetry import current_trace_id
from reverie.store.traces import StoredTrace

LISTED = 60
"""Candidates that a trace tells of, the best first."""
KEYWORDS = 100
QUERY_CHARS = 2_000
LIMIT = Cut("limit")


@dataclass(frozen=True)
class Told:
    """A recall that was answered: by whom, under which request, in how many milliseconds."""

    id: UUID
    trace_id: str | None
    at: datetime
    who: Principal
    session: UUID | None
    question: Question
    answer: Answer
    milliseconds: float
    fusion: str


async def traced(parts: Parts, who: Principal, question: Question, session: UUID | None) -> Answer:
    """`recall`; its trace is made and kept beside the requests."""
    begun = perf_counter()
    answer = await recall(parts, who, question)
    spent = (perf_counter() - begun) * 1000
    now, request = datetime.now(UTC), current_trace_id()
    fusion = parts.settings.fusion
    told = Told(new_id(), request, now, who, session, question, answer, spent, fusion)
    parts.recorder.take(who.tenant, partial(stored, told))
    return answer


def stored(told: Told) -> StoredTrace:
    """The trace as it is kept: nothing in it that redaction takes out of a text."""
    question, story = told.question, told.answer.story
    clean = redact(question.text)
    reading = read(clean.text, told.at) if clean.count else story.reading
    asked = {
        **_read(clean.text, reading),
        **_asked(question),
        **_outcome(told),
        "intent": story.reading.intent.value,
    }
    return StoredTrace(
        id=told.id,
        trace=UUID(told.trace_id) if told.trace_id else None,
        at=told.at,
        actor=told.who.actor,
        session=told.session,
        agent=question.agent,
        scopes=question.only.scopes,
        query=clean.text[:QUERY_CHARS],
        asked=asked,
        told=_told(told.answer),
    )


def _read(text: str, reading: Reading) -> dict[str, Any]:
    period = reading.period
    return {
        "language": reading.language,
        "keywords": query_text(text).split()[:KEYWORDS],
        "identifiers": reading.identifiers,
        "paths": reading.paths,
        "phrases": reading.phrases,
        "places": sorted(reading.places),
        "period": period and {"since": period.since.isoformat(), "until": period.until.isoformat()},
        "wants": sorted(kind.value for kind in reading.wants),
    }


def _asked(question: Question) -> dict[str, Any]:
    """What was asked beside the text, less what was not."""
    only = question.only
    moments = {
        "as_of": question.as_of,
        "valid_at": only.valid_at,
        "since": only.since,
        "until": only.until,
    }
    lists = {"kinds": only.kinds, "tiers": only.tiers, "tags": only.tags, "files": only.files}
    given = {name: list(one) for name, one in lists.items() if one is not None}
    return {
        "limit": question.limit,
        "budget_tokens": question.budget_tokens,
        "depth": question.depth,
        "min_confidence": question.min_confidence,
        "turns": question.turns,
        "statuses": list(only.status),
        **(redact_value(given).value if given else {}),
        **{name: at.isoformat() for name, at in moments.items() if at is not None},
    }


def _outcome(told: Told) -> dict[str, Any]:
    answer = told.answer
    return {
        "found": len(answer.story.found) + len(answer.story.turns),
        "returned": len(answer.hits),
        "tokens": answer.tokens,
        "milliseconds": round(told.milliseconds, 2),
        "degraded": answer.degraded,
        "fusion": told.fusion,
        "weights": dict(told.answer.story.weights),
    }


def _told(answer: Answer) -> dict[str, Any]:
    story = answer.story
    places = {one.id: place for place, one in enumerate(story.ranked, start=1)}
    bases = {one.id: one.score for one in story.found}
    listed = [
        (
            *_numbers(one, bases.get(one.id, one.score)),
            *_fate(story, one.id, rank),
            places.get(one.id),
        )
        for one, rank in islice(_in_order(answer), LISTED)
    ]
    arms = {name: len(found) for name, found in story.arms.items()}
    return {
        "arms": arms | ({"turns": len(story.turns)} if story.turns else {}),
        "took": dict(story.took),
        "candidates": listed,
        "omitted": len(story.found) + len(story.turns) - len(listed),
    }


def _in_order(answer: Answer) -> Iterator[tuple[Found, int | None]]:
    """Each candidate once, as it last stood: the answer, what was weighed, turns, the rest."""
    seen = set[UUID]()
    story = answer.story
    answered = ((hit.found, rank) for rank, hit in enumerate(answer.hits, start=1))
    others = ((one, None) for one in chain(story.ranked, story.turns, story.found))
    for one, rank in chain(answered, others):
        if one.id not in seen:
            seen.add(one.id)
            yield one, rank


def _numbers(one: Found, base: float) -> tuple[Any, ...]:
    """What a candidate's score is made of; `base` is what it was before the factors."""
    arms = {name: _arm(rank, one.raw.get(name)) for name, rank in one.arms.items()}
    hops = [(hop.source, hop.kind, round(hop.lent, 5)) for hop in one.hops]
    return one.id, round(one.score, 5), round(base, 5), round(one.fused, 5), arms, one.factors, hops


def _arm(rank: int, score: float | None) -> tuple[float, ...]:
    return (rank,) if score is None else (rank, round(score, 5))


def _fate(story: Story, one: UUID, rank: int | None) -> tuple[Any, ...]:
    """Where a candidate ended, how like others it was, and what cut it if it is not answered."""
    alike = story.alike.get(one)
    near = round(alike, 4) if alike else None
    if rank is not None:
        return rank, near, None, None
    cut = story.left.get(one, LIMIT)
    return None, near, cut.why, cut.by


def told_again(told: Mapping[str, Any]) -> dict[str, Any]:
    """What `stored` keeps of how an answer came about, as it is told: with a name for each part."""
    return {**told, "candidates": [_candidate(one) for one in told["candidates"]]}


def _candidate(kept: Any) -> dict[str, Any]:
    """One candidate; those that an older service kept have their names already."""
    if isinstance(kept, dict):
        return kept
    one, score, base, fused, arms, factors, hops, rank, near, cut, cut_by, place = kept
    return {
        "id": one,
        "type": "turn" if "turns" in arms else "memory",
        "score": score,
        "base": base,
        "fused": fused,
        "arms": {
            name: dict(zip(("rank", "score"), arm, strict=False)) for name, arm in arms.items()
        },
        "hops": [{"source": source, "type": kind, "lent": lent} for source, kind, lent in hops],
        "factors": factors,
        "rank": rank,
        "likeness": near,
        "cut": cut,
        "cut_by": cut_by,
        "place": place,
    }
