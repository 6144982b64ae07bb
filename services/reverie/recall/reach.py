"""What of all that was found could still come into an answer, and so is looked up. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from reverie.domain.question import Reading
from reverie.domain.ranking import Found
from reverie.domain.worth import HOLDS_NAME, most
from reverie.store.search import Candidate

FIRST = 4
"""How many times what diversity chooses from is looked up at once, at most."""


class Asked(NamedTuple):
    """What is looked up: `whole` as it is, `named` only where it holds a name; `far` is not."""

    whole: list[Found]
    named: list[Found]
    far: list[Found]


def first_asked(found: Sequence[Found], many: int, reading: Reading) -> Asked:
    """What comes to the score of the last of the best `many`, if all else is worth what these are.

    Where a question asks by names alone, what holds one comes before all else, and so does what
    took its place: whatever words found is looked up.
    """
    bar = found[many - 1].score if len(found) >= many else 0.0
    head, rest = found[: FIRST * many], found[FIRST * many :]
    asked = within_reach(head, bar, reading)
    if reading.alone:
        whole = [*asked.whole, *asked.named, *asked.far, *rest]
        near = {one.id for one in asked.whole}
        return Asked([one for one in whole if one.id in near or "words" in one.arms], [], [])
    return asked


def bar_of(weighed: Sequence[Found], known: Mapping[UUID, Candidate], many: int) -> float:
    """The score of the last of the best `many` different texts, 0 while there are too few."""
    best: dict[bytes, float] = {}
    for one in weighed:
        text = known[one.id].facts.content_hash
        best[text] = max(one.score, best.get(text, 0.0))
    scores = sorted(best.values(), reverse=True)[:many]
    return scores[-1] if len(scores) == many else 0.0


def within_reach(
    part: Sequence[Found],
    bar: float,
    reading: Reading,
    lacking: Callable[[Found], float] = lambda _: 1.0,
    nameless: Container[UUID] = (),
) -> Asked:
    """Parts `part` by whether it can come to the `bar` at its best; 0 is for all of it.

    `lacking`: by what a memory is made good that has no vectors yet. What words did not find holds
    no name of the question, nor do those that are known to be `nameless`.
    """
    asked, best = Asked([], [], []), most(reading)
    for one in part:
        worth = one.score * best * lacking(one)
        if worth >= bar:
            asked.whole.append(one)
        elif (
            reading.names
            and worth * HOLDS_NAME >= bar
            and "words" in one.arms
            and one.id not in nameless
        ):
            asked.named.append(one)
        else:
            asked.far.append(one)
    return asked
