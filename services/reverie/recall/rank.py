"""Recall: words and meaning side by side, fused, one hop of the graph, a token budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

import structlog

from reverie.domain.access import Principal
from reverie.domain.errors import ReverieError
from reverie.domain.kinds import ANCHORS
from reverie.domain.memory import Memory
from reverie.domain.ranking import Found, best_first, expand, fuse, weigh
from reverie.domain.words import query_text
from reverie.recall.parts import Parts
from reverie.recall.timely import timely
from reverie.runtime.telemetry import span
from reverie.store.search import Filter, Link, Scored, TurnHit

log = structlog.get_logger("reverie.recall")

T = TypeVar("T")

TURN_WEIGHT = 0.6

Between = tuple[UUID, UUID, UUID, str, float]
"""An edge between two memories of an answer: id, source, target, type, weight."""


@dataclass(frozen=True)
class Question:
    """What is asked: the text, readable scope patterns, what may be found, how far to walk.

    `agent`: whose turns may be found, for transcripts are not shared; None is any.
    """

    text: str
    only: Filter
    limit: int
    budget_tokens: int | None
    hops: bool
    turns: bool
    agent: str | None = None
    as_of: datetime | None = None
    valid_at: datetime | None = None


@dataclass(frozen=True)
class Hit:
    """A memory or a turn in the answer."""

    found: Found
    item: Memory | TurnHit

    @property
    def content(self) -> str:
        """The text that counts against the budget."""
        return self.item.content


@dataclass
class Arms:
    """What the arms brought, and which of them could not."""

    degraded: list[str] = field(default_factory=list)

    async def ask(self, name: str, seconds: float, arm: Awaitable[list[T]] | None) -> list[T]:
        """An arm's answer; one that fails or is late brings nothing and is named; None is off."""
        if arm is None:
            return []
        try:
            with span(f"recall {name}"):
                return await timely(arm, seconds)
        except (ReverieError, TimeoutError) as error:
            log.warning("arm_failed", arm=name, error=type(error).__name__)
        except Exception as error:
            log.exception("arm_failed", arm=name, error=type(error).__name__)
        self.degraded.append(name)
        return []


@dataclass(frozen=True)
class Answer:
    """The hits in order, the edges among them, the tokens they take, the arms that were missing."""

    hits: list[Hit]
    edges: list[Between]
    tokens: int
    degraded: list[str]


async def recall(parts: Parts, who: Principal, question: Question) -> Answer:
    """Never raises because an arm failed; `degraded` names it."""
    arms = Arms()
    words = query_text(question.text)
    seconds = parts.settings.arm_seconds
    by_words, by_meaning, turns = await asyncio.gather(
        arms.ask("words", seconds, _words(parts, who, words, question)),
        arms.ask("meaning", seconds, None if question.as_of else _meaning(parts, who, question)),
        arms.ask("turns", seconds, _turns(parts, who, words, question) if question.turns else None),
    )
    found = fuse({"words": by_words, "meaning": by_meaning})
    if question.hops:
        links = await arms.ask("graph", seconds, _links(parts, who, question, found))
        found = expand(found, links)
    memories = await _memories(parts, who, question, found, arms)
    hits = _together(memories, turns)
    kept, tokens = within(hits, question.limit, question.budget_tokens, parts.model.counter.count)
    edges = await arms.ask(
        "edges", seconds, _edges(parts, who, question, kept) if question.hops else None
    )
    return Answer(kept, edges, tokens, sorted(arms.degraded))


async def _edges(
    parts: Parts, who: Principal, question: Question, hits: Sequence[Hit]
) -> list[Between]:
    ids = [hit.item.id for hit in hits if isinstance(hit.item, Memory)]
    if question.as_of:
        return await parts.past.among(who, ids, question.as_of)
    return await parts.search.among(who, ids) if ids else []


async def _words(parts: Parts, who: Principal, words: str, question: Question) -> list[Scored]:
    only, limit = question.only, parts.settings.candidates
    if question.as_of:
        return await parts.past.words(who, words, question.as_of, only, limit)
    return await parts.search.words(who, words, only, limit)


async def _meaning(parts: Parts, who: Principal, question: Question) -> list[Scored]:
    [vector] = await parts.model.ready().embed([question.text])
    return await parts.search.meaning(who, vector, question.only, parts.settings.candidates)


async def _turns(parts: Parts, who: Principal, words: str, question: Question) -> list[TurnHit]:
    limit = parts.settings.candidates
    found = await parts.search.turns(who, question.agent, words, question.only.scopes, limit)
    return [turn for turn in found if question.as_of is None or turn.at <= question.as_of]


async def _links(
    parts: Parts, who: Principal, question: Question, found: Sequence[Found]
) -> list[Link]:
    seeds = [one.id for one in found[: parts.settings.hop_seeds]]
    if not seeds:
        return []
    scopes, fan_out = question.only.scopes, parts.settings.hop_fan_out
    if question.as_of:
        return await parts.past.around(who, seeds, scopes, fan_out, question.as_of)
    return await parts.search.around(who, seeds, scopes, fan_out)


async def _memories(
    parts: Parts, who: Principal, question: Question, found: Sequence[Found], arms: Arms
) -> list[Hit]:
    """The memories behind the ids, weighed; anchors are no answer, twins come once."""

    if not found:
        return []

    async def load() -> list[Memory]:
        ids = [one.id for one in found]
        scopes, at = question.only.scopes, question.as_of
        if at:
            return list((await parts.past.load(who, ids, scopes, at)).values())
        return list((await parts.search.load(who, ids, scopes)).values())

    loaded = {m.id: m for m in await arms.ask("store", parts.settings.arm_seconds, load())}
    now = question.as_of or datetime.now(UTC)
    hits = {
        one.id: Hit(weigh(one, loaded[one.id], now, parts.settings.half_lives), loaded[one.id])
        for one in found
        if one.id in loaded and _wanted(loaded[one.id], question)
    }
    ordered = best_first(hit.found for hit in hits.values())
    once: dict[str, UUID] = {}
    for one in ordered:
        once.setdefault(loaded[one.id].content_hash, one.id)
    return [hits[one.id] for one in ordered if once[loaded[one.id].content_hash] == one.id]


def _wanted(memory: Memory, question: Question) -> bool:
    only, at = question.only, question.valid_at
    kinds = only.kinds
    if at and not _was_true(memory, at):
        return False
    if kinds is not None:
        return memory.kind.value in kinds and memory.status.value in only.status
    return memory.kind not in ANCHORS and memory.status.value in only.status


def _was_true(memory: Memory, at: datetime) -> bool:
    begun = memory.valid_from is None or memory.valid_from <= at
    return begun and (memory.valid_to is None or at < memory.valid_to)


def _together(memories: list[Hit], turns: Sequence[TurnHit]) -> list[Hit]:
    """Memories and raw turns in one order: the best turn stands just below the best memory.

    Turns are scored as a share of the best turn, since another corpus gave them; a turn gives
    way to a memory that was made of it.
    """
    told = {
        turn for hit in memories[:20] if isinstance(hit.item, Memory) for turn in hit.item.turns
    }
    top = max((hit.found.score for hit in memories), default=1.0)
    fresh = [turn for turn in turns if turn.id not in told]
    raw = [
        Hit(Found(turn.id, TURN_WEIGHT * top * turn.score / fresh[0].score, {"turns": rank}), turn)
        for rank, turn in enumerate(fresh, start=1)
    ]
    return sorted([*memories, *raw], key=lambda hit: (-hit.found.score, hit.found.id))


def within(
    hits: Sequence[Hit], limit: int, budget: int | None, count: Callable[[str], int]
) -> tuple[list[Hit], int]:
    """At most `limit` hits whose contents together take at most `budget` tokens.

    One that does not fit is passed over for a smaller one behind it.
    """
    kept: list[Hit] = []
    used = 0
    for hit in hits:
        if len(kept) == limit:
            break
        cost = count(hit.content)
        if budget is None or used + cost <= budget:
            kept.append(hit)
            used += cost
    return kept, used
