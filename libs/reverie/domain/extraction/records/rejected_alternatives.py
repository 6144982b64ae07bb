"""Proposals and options of an agent that the user refused, with the reason that was given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from reverie.domain.extraction.conversation.exchanges import Exchange, extract_statements
from reverie.domain.extraction.records.record_statements import strip_opening
from reverie.domain.extraction.wording import discourse_markers
from reverie.domain.extraction.wording.proofreading import restate_proposal
from reverie.domain.extraction.wording.salience import is_question
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import parse_blocks, shorten, split_sentences, to_plain_text
from reverie.domain.text.turns import TurnText

MAX_ANSWER_CHARS = 1_200
"""A longer message brings a plan of its own; it does not answer point by point."""
MAX_PROPOSAL_CHARS, MAX_REASON_CHARS = 300, 200
_WHY_NOT = re.compile(r"\bwhy (?:not|don'?t we|aren'?t we)(?: just| simply)? ([^?]{3,120})\?", re.I)
_BUT = re.compile(r"\b(?:but|however|because)\b", re.I)
_OPTION_NUMBER = re.compile(r"(?:^|(?<=[\s:]))(?:\(\d\)|\d[.)]|\([a-d]\)|[a-d]\))\s+", re.M | re.I)


@dataclass(frozen=True)
class RejectedAlternative:
    """A proposal that was refused, with the reason that was given, if there was one."""

    proposal: str
    reason: str
    turn: TurnText


def iter_rejected(exchange: Exchange) -> Iterator[RejectedAlternative]:
    """Yields what the user's answer to the last reply refuses: its proposal, or its options.

    Also what the user asked about ("why not ...?"), the agent objected to, and nobody chose.
    """
    if exchange.last_reply is None or exchange.verdict is None:
        return
    verdict, reply = exchange.verdict, exchange.last_reply.content
    asked = _WHY_NOT.search(exchange.request)
    objection = next(iter(s for s in _list_sentences(reply) if _BUT.search(s)), "")
    if asked and objection and not (content_words(asked[1]) & exchange.later_choices):
        proposal = shorten(restate_proposal(asked[1].strip()), MAX_PROPOSAL_CHARS)
        yield RejectedAlternative(
            proposal, shorten(objection, MAX_REASON_CHARS), exchange.last_reply
        )
    if len(verdict.content) > MAX_ANSWER_CHARS:
        return
    answers = [strip_opening(s) for s in extract_statements(verdict.content)]
    options = _list_options(reply)
    words_of_options = [content_words(option) for option in options]
    for answer in answers:
        if not discourse_markers.OBJECTION.search(answer) or is_question(answer):
            continue
        shared = [len(words & content_words(answer)) for words in words_of_options]
        most = max(shared, default=0)
        if most and shared.count(most) == 1:
            option = options[shared.index(most)]
            yield _refuse(option, answer, verdict)
    if not exchange.is_refused or options:
        return
    reason = next((answer for answer in answers if not is_question(answer)), "")
    answer_words = content_words(verdict.content)
    proposals = [
        sentence
        for sentence in _list_sentences(reply)
        if discourse_markers.PROPOSAL.search(sentence)
        and not discourse_markers.INSPECTION.search(sentence)
        and not (is_question(sentence) and re.search(r"\bor\b", sentence, re.I))
    ]
    best = max(proposals, key=lambda s: len(content_words(s) & answer_words), default=None)
    if best and content_words(best) & answer_words:
        yield _refuse(best, reason, verdict)


def _refuse(proposal: str, reason: str, verdict: TurnText) -> RejectedAlternative:
    cues = (discourse_markers.COLLOQUIAL.search, discourse_markers.ANAPHORIC_START.match)
    is_vague = any(cue(reason) for cue in cues)
    return RejectedAlternative(
        shorten(restate_proposal(strip_opening(proposal)), MAX_PROPOSAL_CHARS),
        "" if is_vague else shorten(reason, MAX_REASON_CHARS),
        verdict,
    )


def _list_options(content: str) -> list[str]:
    """The options that a message numbers, in a sentence or in a list; [] if it numbers none."""
    parts = _OPTION_NUMBER.split(content)[1:]
    if len(parts) < 2:
        return []
    texts = (to_plain_text(part.strip().partition("\n")[0]).strip(" ,;") for part in parts)
    return [text for text in texts if text]


def _list_sentences(content: str) -> list[str]:
    return [
        s
        for block in parse_blocks(content)
        if block.type in {"text", "item"}
        for s in split_sentences(to_plain_text(block.text))
    ]
