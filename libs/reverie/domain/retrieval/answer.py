"""Assembles an answer from selected memories and turns: merges turns and fits the budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from uuid import UUID

from reverie.domain.core.memory import Memory
from reverie.domain.retrieval.candidates import Rejection, ScoredMemory, TurnHit
from reverie.domain.retrieval.question_parsing import list_distinctive_words
from reverie.domain.retrieval.record_excerpts import excerpt_record
from reverie.domain.retrieval.relevance import compute_text_relevance
from reverie.domain.retrieval.succession import Successors, iterate_successors

TURN_WEIGHT = 0.6
"""The score of the best turn as a share of the best memory's.

Its relevance is lowered by the same factor: the best of many turns has words of any question."""
NEARER_TURN_WEIGHT = 1.05
"""The share if the turn is even so more relevant than the memory."""
MIN_TURN_RELEVANCE = 0.15
MAX_MERGED_TURNS = 3
ADJACENT_TURN_SHARE = 0.4
MAX_RECORD_SHARE, MIN_EXCERPT_TOKENS = 0.5, 80
"""The share of what is left of a budget that one record may take, and what it may always take."""
MAX_MEMORIES_BEFORE_TURNS = 20
"""A turn is left out if a memory made from it is among this many first ones."""

AnswerEdge = tuple[UUID, UUID, UUID, str, float]
"""An edge between two memories of an answer: id, source, target, type, weight."""


@dataclass(frozen=True)
class RankedHit:
    """A memory or a turn in the answer; `turns`: neighbours that are read as one with it.

    `relevance`: how surely it answers the question, 0 to 1; None if that is not known. `excerpt`:
    the part of a record that is given, where the whole does not fit the budget.
    """

    scored: ScoredMemory
    item: Memory | TurnHit
    turns: tuple[TurnHit, ...] = ()
    relevance: float | None = None
    excerpt: str | None = None

    @property
    def content(self) -> str:
        """The text that is given, and counts against the budget."""
        if self.excerpt is not None:
            return self.excerpt
        return "\n\n".join(turn.content for turn in self.turns) or self.item.content


@dataclass(frozen=True)
class Answer:
    """The hits of an answer, best first, the edges among them, and the tokens that they take.

    `scored_turns`: all turns that competed. `rejections`: why other hits are not in the answer.
    """

    hits: Sequence[RankedHit]
    edges: Sequence[AnswerEdge]
    tokens: int
    scored_turns: Sequence[ScoredMemory]
    rejections: Mapping[UUID, Rejection]


def assemble_answer(
    memories: list[RankedHit],
    turns: Sequence[TurnHit],
    edges: Sequence[AnswerEdge],
    limit: int,
    budget_tokens: int | None,
    count_tokens: Callable[[str], int],
    successors: Successors,
    question: str = "",
) -> Answer:
    """Merges the turns into the memories, and selects hits while limit and budget last.

    Hits with a higher score than the last selected one were dropped for diversity.
    """
    hits = merge_turns(memories, turns, question)
    selected, tokens = fit_budget(hits, limit, budget_tokens, count_tokens, successors, question)
    rejections = rejection_reasons(hits, selected, limit)
    ordered = sorted(selected, key=lambda hit: (-hit.scored.score, hit.scored.id))
    ordered, absorbed = merge_adjacent_turns(ordered)
    selected_ids = {hit.item.id for hit in selected}
    return Answer(
        ordered,
        [edge for edge in edges if edge[1] in selected_ids and edge[2] in selected_ids],
        tokens,
        [hit.scored for hit in hits if isinstance(hit.item, TurnHit)],
        rejections | absorbed,
    )


def rejection_reasons(
    hits: Sequence[RankedHit], selected: Sequence[RankedHit], limit: int
) -> dict[UUID, Rejection]:
    """Why each of `hits`, which are in the order of selection, is not selected.

    A hit before the last selected one did not fit the budget. A hit behind it with a higher score
    gave way to diversity.
    """
    selected_ids = {hit.item.id for hit in selected}
    last = selected[-1] if len(selected) == limit else None
    rejections: dict[UUID, Rejection] = {}
    is_past_last = False
    for hit in hits:
        if hit.item.id not in selected_ids:
            is_better = last is not None and hit.scored.score > last.scored.score
            rejections[hit.item.id] = Rejection(
                ("diversity" if is_better else "limit") if is_past_last else "budget"
            )
        is_past_last = is_past_last or (last is not None and hit.item.id == last.item.id)
    return rejections


def merge_turns(
    memories: list[RankedHit], turns: Sequence[TurnHit], question: str
) -> list[RankedHit]:
    """Merges raw turns into the memories, whose order is kept.

    Turns are scored as a share of the best turn, because they come from another corpus. A turn is
    dropped for a memory derived from it. The best turn ranks well below the best memory, or just
    above it if it is more relevant.
    """
    digested_turn_ids = {
        turn
        for hit in memories[:MAX_MEMORIES_BEFORE_TURNS]
        if isinstance(hit.item, Memory)
        for turn in hit.item.turns
    }
    new_turns = [turn for turn in turns if turn.id not in digested_turn_ids]
    if not new_turns:
        return memories
    turn_scores = score_with_adjacent_turns(
        {turn.id: (turn.session, turn.ordinal, turn.score) for turn in turns}
    )
    ranks = {turn.id: position for position, turn in enumerate(turns, start=1)}
    best_turn = max(new_turns, key=lambda turn: turn_scores[turn.id])
    top_score = _compute_top_score(memories, best_turn, question)
    turn_hits = [
        RankedHit(
            ScoredMemory(
                turn.id,
                score := top_score * turn_scores[turn.id] / turn_scores[best_turn.id],
                {"turns": ranks[turn.id]},
                {"turns": turn.score},
                fused_score=score,
                base_score=score,
            ),
            turn,
        )
        for turn in new_turns
    ]
    return sorted([*memories, *turn_hits], key=lambda hit: (-hit.scored.score, hit.scored.id))


def _compute_top_score(memories: Sequence[RankedHit], turn: TurnHit, question: str) -> float:
    """The score of the best turn: scores of two corpora cannot be compared, but relevance can."""
    best = max(memories, key=lambda hit: hit.scored.score, default=None)
    if best is None:
        return TURN_WEIGHT
    words = list_distinctive_words(question)
    relevance = TURN_WEIGHT * compute_text_relevance(words, turn.content)
    is_nearer = best.relevance is not None and relevance > max(best.relevance, MIN_TURN_RELEVANCE)
    return best.scored.score * (NEARER_TURN_WEIGHT if is_nearer else TURN_WEIGHT)


def merge_adjacent_turns(
    hits: Sequence[RankedHit],
) -> tuple[list[RankedHit], dict[UUID, Rejection]]:
    """Merges up to `MAX_MERGED_TURNS` consecutive turns into one hit.

    Also returns a rejection for each merged turn.

    A question with its answer is more useful than each alone.
    """
    merged: list[RankedHit] = []
    absorbed: dict[UUID, Rejection] = {}
    for hit in hits:
        index = next((n for n, other in enumerate(merged) if _are_adjacent(other, hit)), None)
        if index is None or not isinstance(hit.item, TurnHit):
            merged.append(hit)
            continue
        target = merged[index]
        turns = sorted([*_turns_of_hit(target), hit.item], key=lambda turn: turn.ordinal)
        merged[index] = replace(target, turns=tuple(turns))
        absorbed[hit.item.id] = Rejection("beside", target.item.id)
    return merged, absorbed


def _are_adjacent(first: RankedHit, second: RankedHit) -> bool:
    first_turns, second_turns = _turns_of_hit(first), _turns_of_hit(second)
    if not (first_turns and second_turns):
        return False
    return (
        len(first_turns) + len(second_turns) <= MAX_MERGED_TURNS
        and first_turns[0].session == second_turns[0].session
        and (
            second_turns[-1].ordinal + 1 == first_turns[0].ordinal
            or first_turns[-1].ordinal + 1 == second_turns[0].ordinal
        )
    )


def _turns_of_hit(hit: RankedHit) -> Sequence[TurnHit]:
    return hit.turns or ((hit.item,) if isinstance(hit.item, TurnHit) else ())


def score_with_adjacent_turns(turns: Mapping[UUID, tuple[UUID, int, float]]) -> dict[UUID, float]:
    """Scores turns, given as (session, position, score), with those of two turns on each side.

    The answer to a question is often next to the turn that has its words.
    """
    score_at = {(session, position): score for session, position, score in turns.values()}
    return {
        turn: score
        + sum(
            ADJACENT_TURN_SHARE / abs(offset) * score_at.get((session, position + offset), 0.0)
            for offset in (-2, -1, 1, 2)
        )
        for turn, (session, position, score) in turns.items()
    }


def fit_budget(
    hits: Sequence[RankedHit],
    limit: int,
    budget: int | None,
    count: Callable[[str], int],
    successors: Successors,
    question: str = "",
) -> tuple[list[RankedHit], int]:
    """Selects at most `limit` hits whose contents together have at most `budget` tokens.

    A record may take `MAX_RECORD_SHARE` of what is left, unless it is the last hit: of a longer
    one, the part that answers the question best is given. Another hit that does not fit is replaced
    by a smaller one after it, but not by a memory that it replaced.
    """
    selected: list[RankedHit] = []
    misfit_ids: set[UUID] = set()
    used = 0
    for hit in hits:
        if len(selected) == limit:
            break
        is_outdated = not misfit_ids.isdisjoint(iterate_successors(hit.item.id, successors))
        room = inf if budget is None else budget - used
        is_last = hit is hits[-1] or len(selected) == limit - 1
        fitting, cost = (None, 0) if is_outdated else _fit_hit(hit, room, is_last, count, question)
        if fitting is None:
            misfit_ids.add(hit.item.id)
            continue
        selected.append(fitting)
        used += cost
    return selected, used


def _fit_hit(
    hit: RankedHit, room: float, is_last: bool, count: Callable[[str], int], question: str
) -> tuple[RankedHit | None, int]:
    """A hit that has at most `room` tokens: the whole, or a part of a record; None if neither.

    And the tokens that it takes.
    """
    cost = count(hit.content)
    if not (isinstance(hit.item, Memory) and "record" in hit.item.metadata):
        return (hit, cost) if cost <= room else (None, 0)
    share = room if is_last else max(MAX_RECORD_SHARE * room, MIN_EXCERPT_TOKENS)
    if cost <= min(share, room):
        return hit, cost
    excerpt = excerpt_record(hit.content, question, lambda text: count(text) <= min(share, room))
    return (replace(hit, excerpt=excerpt), count(excerpt)) if excerpt else (None, 0)
