"""How recall joins memories and turns into a result, and why candidates were left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import UUID, uuid4

from reverie.domain.core.memory import Memory
from reverie.domain.retrieval.answer import (
    RankedHit,
    assemble_answer,
    merge_adjacent_turns,
    merge_turns,
    rejection_reasons,
)
from reverie.domain.retrieval.candidates import Rejection, ScoredMemory, TurnHit
from tests.domain.made_up_memories import NOW
from tests.domain.retrieval.made_up_candidates import memory


@dataclass(frozen=True)
class Text:
    id: UUID
    content: str = "x"


def _hits(*scores: float) -> list[RankedHit]:
    """In the order in which they were chosen."""
    ids = [UUID(int=n) for n in range(len(scores))]
    found = [ScoredMemory(one, score) for one, score in zip(ids, scores, strict=True)]
    return [RankedHit(one, cast("Any", Text(one.id))) for one in found]


def _why(hits: list[RankedHit], kept: list[RankedHit], limit: int) -> dict[int, Rejection]:
    return {one.int: cut for one, cut in rejection_reasons(hits, kept, limit).items()}


def test_hits_skipped_before_the_limit_exceeded_the_budget() -> None:
    hits = _hits(0.9, 0.8, 0.7, 0.6)
    assert _why(hits, [hits[0], hits[2]], 2) == {1: Rejection("budget"), 3: Rejection("limit")}
    assert _why(hits, [hits[0]], 2) == {n: Rejection("budget") for n in (1, 2, 3)}


def test_hits_that_outscore_a_selected_one_were_rejected_for_diversity() -> None:
    hits = _hits(0.9, 0.5, 0.8, 0.4)
    assert _why(hits, hits[:2], 2) == {2: Rejection("diversity"), 3: Rejection("limit")}


def test_nothing_is_rejected_where_everything_is_selected() -> None:
    hits = _hits(0.9, 0.5)
    assert _why(hits, hits, 2) == {}
    assert _why([], [], 2) == {}


TURN = TurnHit(uuid4(), uuid4(), 0, "user", "zebra", NOW, "project/shop", "ann", 5.0)


def ranked_hit(score: float, by_words: float) -> RankedHit:
    made = memory(id=uuid4(), scope="project/shop")
    raw = {"words": by_words} if by_words else {"meaning": 0.5}
    return RankedHit(ScoredMemory(made.id, score, raw_scores=raw), made)


def test_the_best_turn_comes_first_only_where_it_is_more_relevant() -> None:
    told = replace(TURN, content="On winter nights, the zebra sleeps in the old stable.")
    other = replace(TURN, content="The zebra eats. " + "The lion runs. " * 100)

    question = "Where does the zebra sleep at night in winter?"

    def first_of(turn: TurnHit, relevance: float, score: float = 0.5) -> UUID:
        hits = [replace(ranked_hit(score, 0.0), relevance=relevance), ranked_hit(0.3, 0.0)]
        first, second, third = merge_turns(hits, [turn], question)
        assert first.scored.score > second.scored.score >= third.scored.score
        return first.item.id

    assert first_of(told, 0.1) == told.id
    assert first_of(told, 0.1, score=1.0) == told.id
    assert first_of(told, 0.7) != told.id
    assert first_of(other, 0.0) != other.id
    assert [hit.item.id for hit in merge_turns([], [told], "zebra")] == [told.id]


def test_up_to_three_adjacent_turns_are_merged() -> None:
    def said(place: int, score: float, session: UUID = TURN.session) -> RankedHit:
        turn = replace(TURN, id=uuid4(), ordinal=place, session=session, content=f"turn {place}")
        return RankedHit(ScoredMemory(turn.id, score), turn)

    best, other, away = said(5, 0.9), ranked_hit(0.8, 1.0), said(6, 0.7, uuid4())
    before, after, far, last = said(4, 0.6), said(6, 0.5), said(8, 0.4), said(7, 0.3)
    read, gone = merge_adjacent_turns([best, other, away, before, after, far, last])
    assert [hit.item.id for hit in read] == [one.item.id for one in (best, other, away, far)]
    assert read[0].content == "turn 4\n\nturn 5\n\nturn 6"
    assert [turn.id for turn in read[0].turns] == [h.item.id for h in (before, best, after)]
    assert read[3].content == "turn 7\n\nturn 8"
    assert gone[before.item.id] == Rejection("beside", best.item.id)
    assert read[0].scored.score == best.scored.score
    assert merge_adjacent_turns([other, away]) == ([other, away], {})


RECORD = """Uploads of large videos fail with a 413.
Decided: /videos takes at most 2 GB. Every other route takes at most 10 MB.
Found: The proxy refuses the body before the service reads it. It logs nothing of that."""


def _fit(
    content: str, budget: int, question: str, is_record: bool = True, times: int = 1
) -> list[str]:
    hits = []
    for _ in range(times):
        made = ranked_hit(0.5, 1.0)
        item = replace(cast("Memory", made.item), content=content)
        hits.append(replace(made, item=replace(item, metadata={"record": {}} if is_record else {})))

    def count(text: str) -> int:
        return len(text.split())

    answer = assemble_answer(hits, (), (), 5, budget, count, {}, question)
    assert answer.tokens == sum(count(hit.content) for hit in answer.hits) <= budget
    return [hit.content for hit in answer.hits]


def test_of_a_record_that_exceeds_the_budget_the_sentences_that_answer_are_given() -> None:
    heading = RECORD.splitlines()[0]
    assert _fit(RECORD, 41, "What does the proxy log?") == [RECORD]
    long = f"{RECORD} {'The rest of the report tells of other things. ' * 5}".strip()
    [told] = _fit(long, 42, "What does the proxy log of a refused body?")
    assert told.startswith(f"{heading}\n")
    assert "Found: The proxy refuses the body before the service reads it." in told
    assert told.endswith("…")


def test_a_record_leaves_room_for_the_next_where_it_would_take_most_of_the_budget() -> None:
    long = f"{RECORD} {'The rest of the report tells of other things. ' * 12}".strip()
    first, second = sorted(_fit(long, 200, "proxy log", times=2), key=len)
    assert "It logs nothing of that." in first
    assert len(first.split()) <= 100 < len(second.split())


def test_a_record_without_room_for_a_sentence_and_a_plain_text_are_left_out() -> None:
    assert _fit(f"{RECORD} {'word ' * 60}", 12, "proxy") == []
    assert _fit(f"{RECORD} {'word ' * 60}", 45, "proxy", is_record=False) == []
