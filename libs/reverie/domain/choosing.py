"""Which drafts of a slice are kept: the weightiest for their length, as far as there is room.

Chosen greedily, each time the one whose gain is greatest for a power of its length, as in Lin and
Bilmes, "Multi-document Summarization via Budgeted Maximization of Submodular Functions" (2010).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from uuid import UUID

from reverie.domain import signs
from reverie.domain.drafts import MIN_CONTENT, RULE, Draft, commands_of, drafts_of
from reverie.domain.prose import shorten
from reverie.domain.slices import Slice
from reverie.domain.turns import TurnText

# Of what was said in a slice, in characters: the share that its segments may take, and what they
# may take however little or much was said.
SHARE, LEAST, MOST, SLACK = 0.22, 240, 6_000, 15
NEW, MANY = 0.5, 8
"""What an exact thing that nothing weightier names is worth, and how many count at most."""
LENGTH = 0.5
"""The power of a draft's length that its weight is divided by: 0 would not count it at all."""
CUT = 90
"""A draft too long for the room that is left is cut behind a thing said, to no less than this."""


def chosen(part: Slice) -> list[Draft]:
    """The weightiest drafts of a slice that there is room for, in order of time.

    What names exact things that none of those taken before it names weighs more. A user's rules
    need no room, nor does what mends a bug whose cause is kept. What a weightier one says too is
    left to it, with its turns.
    """
    drafts = [draft for draft in drafts_of(part) if len(draft.content.encode()) >= MIN_CONTENT]
    room = room_of(part.turns, SHARE, LEAST, MOST)
    kept: list[Draft] = []
    for draft in _by_weight(drafts, kept):
        twin = next((one for one in kept if _says_too(one, draft)), None)
        if twin:
            twin.turns += draft.turns
        elif draft.worth >= RULE or _mends(draft, kept) or _fits(draft, room):
            kept.append(draft)
            room -= len(draft.content)
    taken = {id(draft) for draft in kept}
    return [draft for draft in drafts if id(draft) in taken] + commands_of(part.turns)


def _by_weight(drafts: Sequence[Draft], kept: Sequence[Draft]) -> Iterator[Draft]:
    """The drafts, each time the one that adds most to those `kept` by then."""
    waiting = list(drafts)
    while waiting:
        told = frozenset[str]().union(*(one.exact for one in kept))
        weights = [_gain(one, told) / len(one.content) ** LENGTH for one in waiting]
        yield waiting.pop(weights.index(max(weights)))


def _gain(draft: Draft, told: AbstractSet[str]) -> float:
    """What a draft adds to exact things that are `told`."""
    return draft.worth + NEW * min(len(draft.exact - told), MANY)


def _mends(draft: Draft, kept: Sequence[Draft]) -> bool:
    """Whether it is the first to say what mends a bug of which its own message names the cause."""
    beside = [one for one in kept if _reporters(one) & _reporters(draft)]
    return bool(
        signs.FIXED.search(draft.about)
        and any(signs.ROOT.search(one.about) for one in beside)
        and not any(signs.FIXED.search(one.about) for one in beside)
    )


def _reporters(draft: Draft) -> set[UUID]:
    """The messages of the agent that a draft cites."""
    return {turn.id for turn in draft.turns if turn.role == "assistant"}


def _fits(draft: Draft, room: int) -> bool:
    """Whether there is room for it, cut between two things said where that makes it fit."""
    if len(draft.content) > room + SLACK >= CUT:
        cut = shorten(draft.content, room + SLACK)
        if len(cut) >= CUT and not cut.endswith("…"):
            draft.content = cut
    return len(draft.content) <= room + SLACK


def _says_too(one: Draft, other: Draft) -> bool:
    """Whether a draft says what another does, by its words."""
    told = bool(other.about) and other.about in one.content and other.worth < RULE
    return told or near(one.words, other.words)


def room_of(turns: Sequence[TurnText], share: float, least: int, most: int) -> int:
    said = sum(len(turn.content) for turn in turns if turn.role in {"user", "assistant"})
    return min(max(int(said * share), least), most)


def near(one: AbstractSet[str], two: AbstractSet[str]) -> bool:
    shared, smaller = len(one & two), min(len(one), len(two))
    return smaller > 0 and (shared / len(one | two) >= 0.65 or shared / smaller >= 0.88)
