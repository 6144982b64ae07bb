"""Why what was found is not in the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from reverie.domain.ranking import Found
from reverie.recall.hits import Cut, Hit, cut_away


@dataclass(frozen=True)
class Text:
    id: UUID
    content: str = "x"


def _hits(*scores: float) -> list[Hit]:
    """In the order in which they were chosen."""
    ids = [UUID(int=n) for n in range(len(scores))]
    found = [Found(one, score) for one, score in zip(ids, scores, strict=True)]
    return [Hit(one, cast("Any", Text(one.id))) for one in found]


def _why(hits: list[Hit], kept: list[Hit], limit: int) -> dict[int, Cut]:
    return {one.int: cut for one, cut in cut_away(hits, kept, limit).items()}


def test_what_was_passed_over_before_the_answer_was_full_did_not_fit_the_budget() -> None:
    hits = _hits(0.9, 0.8, 0.7, 0.6)
    assert _why(hits, [hits[0], hits[2]], 2) == {1: Cut("budget"), 3: Cut("limit")}
    assert _why(hits, [hits[0]], 2) == {n: Cut("budget") for n in (1, 2, 3)}


def test_what_scores_better_than_the_last_that_was_kept_gave_way_to_diversity() -> None:
    hits = _hits(0.9, 0.5, 0.8, 0.4)
    assert _why(hits, hits[:2], 2) == {2: Cut("diversity"), 3: Cut("limit")}


def test_nothing_is_cut_where_all_is_kept() -> None:
    hits = _hits(0.9, 0.5)
    assert _why(hits, hits, 2) == {}
    assert _why([], [], 2) == {}
