"""A conversation as exchanges: what the user said, and what came of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from reverie.domain import cues
from reverie.domain.anchors import paths
from reverie.domain.points import Point, points
from reverie.domain.prose import shorten
from reverie.domain.requests import asked, subject_of, trouble_of
from reverie.domain.slices import NOISE, Slice, is_request
from reverie.domain.turns import TurnText

# Says where something is, and nothing of it.
_PLACE = re.compile(
    r"(?:files?|lines?|location|path)\b:?\s*[`\w./~:-]+(?:\s+lines?\b:?\s*[\d, –-]+)?", re.I
)


@dataclass(frozen=True)
class Exchange:
    """What the user said, and the turns until the user says the next thing.

    `earlier`: the subject before this one; `trouble`: the failure that the user tells of.
    """

    opening: TurnText | None
    request: str
    subject: str
    replies: tuple[TurnText, ...]
    assent: TurnText | None = None
    refuted: bool = False
    earlier: str = ""
    trouble: str = ""

    @property
    def last(self) -> TurnText | None:
        said = [turn for turn in self.replies if turn.role == "assistant"]
        return said[-1] if said else None


def exchanges_of(part: Slice) -> list[Exchange]:
    """The exchanges of a slice in order; the first may have no opening."""
    found: list[Exchange] = []
    opening: TurnText | None = None
    replies: list[TurnText] = []
    for turn in part.turns:
        if turn.role == "user" and not NOISE.match(turn.content):
            found.append(_exchange(opening, replies, found))
            opening, replies = turn, []
        else:
            replies.append(turn)
    found.append(_exchange(opening, replies, found))
    return [_judged(one, two) for one, two in zip(found, [*found[1:], None], strict=True)]


def _exchange(
    opening: TurnText | None, replies: list[TurnText], before: list[Exchange]
) -> Exchange:
    request = asked(opening.content) if opening and is_request(opening) else ""
    subject = subject_of(opening.content, request) if opening else ""
    earlier = before[-1].subject if before else ""
    trouble = trouble_of(opening.content) if opening and request else ""
    return Exchange(
        opening, request, subject or earlier, tuple(replies), earlier=earlier, trouble=trouble
    )


def _judged(one: Exchange, two: Exchange | None) -> Exchange:
    """With what the user's next words say of the report: agreed to, or put right."""
    opening = two.opening if two else None
    if opening is None:
        return one
    if cues.ASSENT.match(opening.content):
        return replace(one, assent=opening)
    return replace(one, refuted=cues.REFUTED.search(opening.content[:200]) is not None)


def outcome_of(exchange: Exchange) -> tuple[TurnText, list[str]] | None:
    """The last report of an exchange, unless the user put it right, weightiest point first."""
    last = exchange.last
    if last is None or exchange.refuted:
        return None
    # A conclusion is said in a sentence, and often first.
    weighed = [
        (weight + (i == 0) + (not point.item), point)
        for i, point in enumerate(points(last.content))
        if (weight := weight_of(point)) > 0
    ]
    ranked = sorted((pair for pair in weighed if pair[0] > 1), key=lambda pair: -pair[0])
    said = [shorten(point.said, 300) for _, point in ranked]
    return (last, said) if said else None


def weight_of(point: Point) -> int:
    """How much a point says: reasons weigh two, names and cues of other sorts one each."""
    text = point.text
    if len(text) < 24 or text.endswith("?") or _PLACE.fullmatch(text):
        return 0
    heavy = (cues.CAUSE, cues.LESSON, cues.REMEMBER)
    light = (
        cues.FIX,
        cues.FAILURE,
        cues.DECISION,
        cues.CONVENTION,
        cues.TASK,
        cues.DONE,
        cues.FINDING,
    )
    weight = sum(2 for cue in heavy if cue.search(text))
    weight += sum(1 for cue in light if cue.search(text))
    named = paths(point.said if point.item else text)
    return weight + (1 if named else 0) + (1 if "`" in text else 0)
