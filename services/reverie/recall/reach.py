"""What of all that was found could still come into an answer, and so is looked up. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from reverie.domain.question import Reading
from reverie.domain.ranking import Found
from reverie.domain.worth import HOLDS_NAME, most
from reverie.store.search import Candidate


class Asked(NamedTuple):
    """What is looked up: `whole` as it is, `named` only where it holds a name; `far` is not."""

    whole: list[Found]
    named: list[Found]
    far: list[Found]


def parted(found: Sequence[Found], ahead: Container[UUID]) -> tuple[list[Found], list[Found]]:
    """What was looked up ahead, and the rest."""
    near = [one for one in found if one.id in ahead]
    return near, [one for one in found if one.id not in ahead]


def bar_of(weighed: Sequence[Found], known: Mapping[UUID, Candidate], many: int) -> float:
    """The score of the last of the best `many` different texts, 0 while there are too few."""
    best: dict[bytes, float] = {}
    for one in weighed:
        text = known[one.id].facts.content_hash
        best[text] = max(one.score, best.get(text, 0.0))
    scores = sorted(best.values(), reverse=True)[:many]
    return scores[-1] if len(scores) == many else 0.0


def still_asked(
    rest: Sequence[Found], bar: float, reading: Reading, lacking: Callable[[Found], float]
) -> Asked:
    """Parts the `rest` by whether it can come to the `bar` at its best; 0 is for all of it.

    `lacking`: by what a memory is made good that has no vectors yet. What words did not find holds
    no name of the question. Where a question asks by names alone, what holds one comes before all
    else, and so does what took its place: whatever words found is looked up.
    """
    asked, best = Asked([], [], []), most(reading)
    for one in rest:
        worth = one.score * best * lacking(one)
        by_words = "words" in one.arms
        if worth >= bar or (reading.alone and by_words):
            asked.whole.append(one)
        elif reading.names and worth * HOLDS_NAME >= bar and by_words:
            asked.named.append(one)
        else:
            asked.far.append(one)
    return asked
