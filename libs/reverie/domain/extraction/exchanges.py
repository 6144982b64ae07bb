"""Grouping of a conversation into exchanges: a user message and the replies to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.extraction import discourse_markers
from reverie.domain.extraction.key_statements import KeyStatement, extract_key_statements
from reverie.domain.extraction.topic_segmentation import NOISE_MESSAGE, TopicSegment, is_request
from reverie.domain.extraction.user_requests import extract_request, extract_subject, find_failure
from reverie.domain.text.markdown import shorten
from reverie.domain.text.turns import TurnText

# Says where something is, and nothing of it.
_LOCATION_ONLY = re.compile(
    r"(?:files?|lines?|location|path)\b:?\s*[`\w./~:-]+(?:\s+lines?\b:?\s*[\d, –-]+)?", re.I
)


@dataclass(frozen=True)
class Exchange:
    """What the user said, and the turns until the user says the next thing.

    `previous_subject`: the subject before this one; `failure`: the failure that the user tells of.
    """

    opening: TurnText | None
    request: str
    subject: str
    replies: tuple[TurnText, ...]
    assent: TurnText | None = None
    refuted: bool = False
    previous_subject: str = ""
    failure: str = ""

    @property
    def last_reply(self) -> TurnText | None:
        messages = [turn for turn in self.replies if turn.role == "assistant"]
        return messages[-1] if messages else None


def split_exchanges(segment: TopicSegment) -> list[Exchange]:
    """The exchanges of a slice in order; the first may have no opening."""
    exchanges: list[Exchange] = []
    opening: TurnText | None = None
    replies: list[TurnText] = []
    for turn in segment.turns:
        if turn.role == "user" and not NOISE_MESSAGE.match(turn.content):
            exchanges.append(_build_exchange(opening, replies, exchanges))
            opening, replies = turn, []
        else:
            replies.append(turn)
    exchanges.append(_build_exchange(opening, replies, exchanges))
    return [
        _add_user_verdict(exchange, following)
        for exchange, following in zip(exchanges, [*exchanges[1:], None], strict=True)
    ]


def _build_exchange(
    opening: TurnText | None, replies: list[TurnText], previous: list[Exchange]
) -> Exchange:
    request = extract_request(opening.content) if opening and is_request(opening) else ""
    subject = extract_subject(opening.content, request) if opening else ""
    previous_subject = previous[-1].subject if previous else ""
    failure = find_failure(opening.content) if opening and request else ""
    return Exchange(
        opening,
        request,
        subject or previous_subject,
        tuple(replies),
        previous_subject=previous_subject,
        failure=failure,
    )


def _add_user_verdict(exchange: Exchange, following: Exchange | None) -> Exchange:
    """With what the user's next words say of the report: agreed to, or put right."""
    opening = following.opening if following else None
    if opening is None:
        return exchange
    if discourse_markers.ASSENT.match(opening.content):
        return replace(exchange, assent=opening)
    return replace(
        exchange, refuted=discourse_markers.REFUTATION.search(opening.content[:200]) is not None
    )


def find_outcome(exchange: Exchange) -> tuple[TurnText, list[str]] | None:
    """The last report of an exchange, unless the user put it right, weightiest point first."""
    last = exchange.last_reply
    if last is None or exchange.refuted:
        return None
    # A conclusion is said in a sentence, and often first.
    weighed = [
        (weight + (index == 0) + (not point.is_item), point)
        for index, point in enumerate(extract_key_statements(last.content))
        if (weight := weigh_statement(point)) > 0
    ]
    ranked = sorted((pair for pair in weighed if pair[0] > 1), key=lambda pair: -pair[0])
    texts = [shorten(point.full_text, 300) for _, point in ranked]
    return (last, texts) if texts else None


def weigh_statement(statement: KeyStatement) -> int:
    """How much a point says: reasons weigh two, names and cues of other sorts one each."""
    text = statement.text
    if len(text) < 24 or text.endswith("?") or _LOCATION_ONLY.fullmatch(text):
        return 0
    heavy = (discourse_markers.CAUSE, discourse_markers.LESSON, discourse_markers.REMEMBER)
    light = (
        discourse_markers.FIX,
        discourse_markers.FAILURE,
        discourse_markers.DECISION,
        discourse_markers.CONVENTION,
        discourse_markers.TASK,
        discourse_markers.COMPLETED_CHANGE,
        discourse_markers.FINDING,
    )
    weight = sum(2 for cue in heavy if cue.search(text))
    weight += sum(1 for cue in light if cue.search(text))
    mentioned_paths = extract_paths(statement.full_text if statement.is_item else text)
    return weight + (1 if mentioned_paths else 0) + (1 if "`" in text else 0)
