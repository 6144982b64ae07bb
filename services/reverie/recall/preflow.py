"""Before a turn: what the session's agent should have now, and was not given yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import zip_longest
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.active_set import (
    PER_SCOPE,
    ActiveSet,
    Chosen,
    Entry,
    Layer,
    Rendered,
    choose,
    on_demand,
    recent,
    render,
    resident,
)
from reverie.domain.briefing import Briefing
from reverie.domain.keywords import asked, keywords
from reverie.domain.memory import Memory
from reverie.domain.open_files import Near
from reverie.domain.question import Reading, read
from reverie.domain.redaction import redact
from reverie.domain.snippets import snippet
from reverie.recall.arms import Arms
from reverie.recall.parts import Parts
from reverie.recall.seen import seen_in
from reverie.recall.story import Answer, Question
from reverie.recall.trace import traced
from reverie.store.memories import VISIBLE
from reverie.store.search import Filter
from reverie.store.sessions import Session

MOST_HITS = 2 * PER_SCOPE
NEAR_SCORE = 0.5
"""What a memory that the open files call for is taken to be worth."""
FAR = 0.25
"""What has less than this share of the best hit's score is too far from the question for a turn."""
OF_A_KIND = 10
"""How many memories of a kind are looked at for what to keep in mind, the newest."""
SLACK_SECONDS = 0.5
"""A recall keeps its time by itself; what waits for a place as long is given up."""
TRIES = 5
"""How often a set is stored anew when other turns of its session are faster."""


@dataclass(frozen=True)
class Turn:
    """A turn that begins: whose, what is said, with which files open, within how many tokens."""

    session: Session
    query: str
    files: Sequence[str] = ()
    budget_tokens: int | None = None
    compacted: bool = False
    again: bool = False


@dataclass(frozen=True)
class Prepared:
    """What the turn begins with: the block, the whole set it is from, and how that came about."""

    block: Rendered
    chosen: Chosen
    lacked: frozenset[UUID]
    turn: int
    scopes: list[str]
    keywords: list[str]
    reading: Reading
    degraded: list[str]


@dataclass(frozen=True)
class _Found:
    known: ActiveSet
    briefing: Briefing
    asked: Answer | None
    near: list[Near]

    @property
    def degraded(self) -> set[str]:
        return set(self.asked.degraded) if self.asked else set()

    def hits(self) -> Iterator[tuple[Memory, float, str]]:
        """What the question found and what the open files call for, by turns, with the reasons.

        Of what is both, the open file is the reason.
        """
        found = self.asked.hits if self.asked else []
        least = FAR * max((hit.found.score for hit in found), default=0.0)
        called = {one.memory.id: one.why for one in self.near}
        hits = [
            (
                hit.item,
                hit.found.score,
                called.get(hit.item.id, f"found by {' and '.join(hit.found.arms)}"),
            )
            for hit in found
            if isinstance(hit.item, Memory) and hit.found.score >= least
        ]
        near = [(one.memory, NEAR_SCORE, one.why) for one in self.near]
        rounds = zip_longest(hits, near)
        return (one for both in rounds for one in both if one is not None)


async def preflow(parts: Parts, who: Principal, turn: Turn) -> Prepared:
    """Never raises because a part of it failed; `degraded` names what could not be asked."""
    now, text = datetime.now(UTC), redact(asked(turn.query)).text
    reading, scopes, arms = read(text, now), seen_in(who, None, turn.session), Arms()
    found = await _found(parts, who, turn, text, scopes, arms)
    settings = parts.settings.active_set
    budgets = settings.within(turn.budget_tokens) if turn.budget_tokens else settings
    words = keywords(text, reading)
    count = parts.model.counter.count
    chosen = choose(_candidates(found, turn.session, now, words), budgets, count)
    lacked, number = await _give(parts, who, turn, found.known, chosen, arms)
    shown = chosen.entries if turn.again else lacked
    return Prepared(
        block=render(shown, count),
        chosen=chosen,
        lacked=frozenset(one.id for one in lacked),
        turn=number,
        scopes=scopes,
        keywords=words,
        reading=reading,
        degraded=sorted({*arms.degraded, *found.degraded}),
    )


def nothing(parts: Parts, query: str, budget_tokens: int | None, missing: list[str]) -> Prepared:
    """What a turn begins with whose session cannot be looked up now."""
    text, settings = asked(query), parts.settings.active_set
    reading = read(text, datetime.now(UTC))
    budgets = settings.within(budget_tokens) if budget_tokens else settings
    return Prepared(
        block=Rendered("", 0, ()),
        chosen=Chosen((), dict.fromkeys(Layer, 0), budgets, 0),
        lacked=frozenset(),
        turn=0,
        scopes=[],
        keywords=keywords(text, reading),
        reading=reading,
        degraded=missing,
    )


async def _found(
    parts: Parts, who: Principal, turn: Turn, text: str, scopes: list[str], arms: Arms
) -> _Found:
    """All that is read, side by side and in time."""
    seconds = parts.settings.arm_seconds
    whole = parts.settings.seconds + SLACK_SECONDS
    question = _question(turn, text, scopes)
    nothing: Answer | None = None
    no_near: list[Near] = []
    return _Found(
        *await asyncio.gather(
            arms.ask("set", seconds, parts.active_sets.get(who, turn.session.id), ActiveSet()),
            arms.ask(
                "briefing", seconds, parts.briefings.read(who, scopes, most=OF_A_KIND), Briefing()
            ),
            arms.ask(
                "recall",
                whole,
                traced(parts, who, question, turn.session.id) if text else None,
                nothing,
            ),
            arms.ask(
                "files",
                seconds,
                parts.briefings.near(who, scopes, turn.session.project, turn.files)
                if turn.files
                else None,
                no_near,
            ),
        )
    )


def _question(turn: Turn, text: str, scopes: list[str]) -> Question:
    return Question(
        text,
        Filter(scopes, list(VISIBLE)),
        limit=min(PER_SCOPE * len(scopes), MOST_HITS),
        budget_tokens=None,
        depth=2,
        turns=False,
        agent=turn.session.agent,
    )


def _candidates(
    found: _Found, session: Session, now: datetime, words: Sequence[str]
) -> dict[Layer, list[Entry]]:
    briefing = found.briefing
    done = {memory for memory, state in briefing.tasks.items() if state == "done"}
    standing = {one.id: one for one in (*briefing.memories, *briefing.stale) if one.id not in done}
    said = partial(snippet, words=" ".join(words))
    return {
        Layer.RESIDENT: resident(session.id, briefing.summaries, session.scope),
        Layer.RECENT: recent(standing.values(), now),
        Layer.ON_DEMAND: on_demand(found.hits(), said),
    }


async def _give(
    parts: Parts, who: Principal, turn: Turn, known: ActiveSet, chosen: Chosen, arms: Arms
) -> tuple[list[Entry], int]:
    """What the session lacks of the chosen, stored as given before it is answered.

    Where another turn of the session was faster, less what that one gives.
    """
    session, seconds = turn.session.id, parts.settings.arm_seconds
    for _ in range(TRIES):
        if "set" in arms.degraded:
            break
        before = known.compacted() if turn.compacted else known
        lacked = chosen.lacked_by(before)
        new = before.with_entries(chosen.entries)
        if await arms.ask("set", seconds, parts.active_sets.put(who, session, new), True):
            return lacked, new.turn
        known = await arms.ask("set", seconds, parts.active_sets.get(who, session), known)
    else:
        arms.degraded.append("set")
    return chosen.lacked_by(known.compacted() if turn.compacted else known), known.turn + 1
