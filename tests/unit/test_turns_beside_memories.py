"""Raw turns among the memories of an answer."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

from reverie.domain.kinds import Kind, Tier
from reverie.domain.memory import Memory, Status
from reverie.domain.ranking import Found
from reverie.recall.hits import Hit, together
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
