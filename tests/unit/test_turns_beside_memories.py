"""Raw turns among the memories of an answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

from reverie.domain.kinds import Kind, Tier
from reverie.domain.memory import Memory, Status
from reverie.domain.ranking import Found
from reverie.recall.hits import Cut, Hit, as_read, together
from reverie.store.search import TurnHit

NOW = datetime(2025, 6, 1, tzinfo=UTC)
TURN = TurnHit(uuid4(), uuid4(), 0, "user", "zebra", NOW, "project/shop", "ann", 5.0)


def memory(score: float, by_words: float) -> Hit:
    made = Memory(
        id=uuid4(),
        scope="project/shop",
        kind=Kind.DECISION,
        content="a memory",
        content_hash="hash",
        tier=Tier.WARM,
        status=Status.ACTIVE,
        version=1,
        confidence=0.8,
        pinned=False,
        created_at=NOW,
        updated_at=NOW,
    )
    raw = {"words": by_words} if by_words else {"meaning": 0.5}
    return Hit(Found(made.id, score, raw=raw), made)


def test_a_turn_with_the_words_comes_first_only_where_no_memory_has_them() -> None:
    near, far = memory(0.5, 0.0), memory(0.3, 0.0)
    assert together([near, far], [TURN])[0].item.id == TURN.id
    same, some = memory(0.5, 5.0), memory(0.5, 2.5)
    scores = {}
    for name, best in {"all": same, "some": some}.items():
        first, second = together([best], [TURN])
        assert (first.item.id, second.item.id) == (best.item.id, TURN.id)
        scores[name] = second.found.score
    assert scores["all"] == 0.3 < scores["some"] < 0.5
    assert together([memory(1.0, 0.0)], [TURN])[0].found.score <= 1.0


def test_turns_that_follow_one_another_are_read_as_one_up_to_three() -> None:
    def said(place: int, score: float, session: UUID = TURN.session) -> Hit:
        turn = replace(TURN, id=uuid4(), ord=place, session=session, content=f"turn {place}")
        return Hit(Found(turn.id, score), turn)

    best, other, away = said(5, 0.9), memory(0.8, 1.0), said(6, 0.7, uuid4())
    before, after, far, last = said(4, 0.6), said(6, 0.5), said(8, 0.4), said(7, 0.3)
    read, gone = as_read([best, other, away, before, after, far, last])
    assert [hit.item.id for hit in read] == [one.item.id for one in (best, other, away, far)]
    assert read[0].content == "turn 4\n\nturn 5\n\nturn 6"
    assert [turn.id for turn in read[0].turns] == [h.item.id for h in (before, best, after)]
    assert read[3].content == "turn 7\n\nturn 8"
    assert gone[before.item.id] == Cut("beside", best.item.id)
    assert read[0].found.score == best.found.score
    assert as_read([other, away]) == ([other, away], {})
