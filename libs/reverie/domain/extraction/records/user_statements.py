"""The statements of a user that may enter a record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.conversation.exchanges import (
    MAX_STATEMENT,
    REMARK,
    Exchange,
    extract_statements,
)
from reverie.domain.extraction.records.record_statements import (
    DECIDED_KINDS,
    MIN_STATEMENT_BYTES,
    OWN_MEMORY_KINDS,
    RULE_SCORE,
    RecordStatement,
    rate_detail,
    strip_opening,
)
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.extraction.wording.salience import (
    SentenceRating,
    is_question,
    rate_correction,
    rate_user_sentence,
)
from reverie.domain.text.markdown import split_sentences
from reverie.domain.text.turns import TurnText, tool_call_status

MAX_OPENING_CHARS = 60
"""Where a sentence says whether it is a musing."""

_ANAPHORIC_ORDER = re.compile(
    r"(?:(?:please|don'?t|do not|never|always|just|leave|keep) )+(?:\w+ )?(?:it|that|them|this)\b",
    re.I,
)
"""An order about what was named in the sentence before."""
_CHANGED_IT = re.compile(
    r"(?:changed|updated|fixed|moved|replaced|removed|made|added) (?:it|that|this|them)\b", re.I
)
_NOTE_OPENING = re.compile(r"(?:fyi|for the record|note|remember|for context)\b[:,]?", re.I)
_OWN_WORD_KINDS = frozenset({Kind.PREFERENCE, Kind.DECISION})
"""Kinds that a user states in the first person."""


def iter_user_statements(exchange: Exchange) -> Iterator[RecordStatement]:
    """Yields the rules, choices, corrections and facts of the message that opens an exchange."""
    turn = exchange.opening
    assert turn is not None
    is_quoted = bool(sentence_patterns.QUOTED_REVIEW.search(turn.content[:300]))
    is_refusal = exchange.previous_subject != "" and bool(
        discourse_markers.REFUSAL.search(turn.content[:200])
    )
    sentences = (s.lstrip(".… ") for s in extract_statements(turn.content))
    for number, sentence in enumerate(_join_anaphoric(sentences)):
        aside = discourse_markers.ASIDE_OPENING.match(sentence)
        text = strip_opening(sentence[aside.end() :] if aside else sentence)
        if aside:
            text = text[:1].upper() + text[1:]
        rating = _rate_sentence(text, is_quoted, is_refusal)
        is_answer = not is_quoted and (exchange.is_reply or is_refusal)
        if (rating is None and not is_answer) or not _is_informative(text, is_refusal):
            continue
        statement = _build_statement(text, turn, exchange, rating, is_refusal)
        # An aside at the start is what the message is about.
        if statement and (statement.is_own_memory or not (aside and number)):
            yield statement


def _rate_sentence(text: str, is_quoted: bool, is_refusal: bool) -> SentenceRating | None:
    """The rating of the whole text, or else of the first of its sentences that has one."""
    ratings = (rate_user_sentence(part, is_quoted) for part in (text, *split_sentences(text)))
    return next(filter(None, ratings), rate_correction(text) if is_refusal else None)


def _build_statement(
    text: str, turn: TurnText, exchange: Exchange, rating: SentenceRating | None, is_refusal: bool
) -> RecordStatement | None:
    """The statement of a sentence; None if it is a remark, a passing wish or too vague."""
    kind = rating.kind if rating else Kind.SPEC
    is_observation = discourse_markers.OBSERVATION.search(text) and kind not in _OWN_WORD_KINDS
    if is_observation or _is_remark(text):
        return None
    is_own_memory = _is_own_memory(text, kind, rating, exchange.is_reply)
    if is_own_memory and _is_for_this_time(text):
        return None
    is_decided = is_own_memory or _settles(text, kind, exchange, is_refusal)
    if not is_decided and kind is not Kind.BUG and _is_vague(text):
        return None
    if rating and (is_own_memory or sentence_patterns.CAUSE_LABEL.match(text)):
        score = rating.score
    else:
        score = _score_record_part(text, rating, is_refusal)
    return RecordStatement(text, turn, score, kind, is_decided, is_own_memory=is_own_memory)


def _is_own_memory(text: str, kind: Kind, rating: SentenceRating | None, is_reply: bool) -> bool:
    """Whether a sentence is a memory of its own, beside the record: a lasting rule, for example.

    A rule in a reply belongs to what was asked. A report, a guess, or a sentence that leans on the
    one before is none.
    """
    is_rule = kind is not Kind.LESSON and rating is not None and rating.score >= RULE_SCORE
    if kind not in OWN_MEMORY_KINDS and (not is_rule or is_reply):
        return False
    return not (
        discourse_markers.ANAPHORIC_START.match(text)
        or discourse_markers.COMPLETED_CHANGE.match(text)
        or sentence_patterns.GUESS.match(text)
        or discourse_markers.THINKING_ALOUD.search(text[:MAX_OPENING_CHARS])
    )


def _is_for_this_time(text: str) -> bool:
    return bool(sentence_patterns.FOR_THIS_TIME.search(text)) and not (
        sentence_patterns.EVERY_TIME.search(text)
    )


def _score_record_part(text: str, rating: SentenceRating | None, is_refusal: bool) -> float:
    """The weight of a sentence among those of a record; an aside counts less."""
    score = 0.5 + (rating.score / 2 if rating else 0.0) + rate_detail(text)
    score += 0.5 * is_refusal
    return score - 2.5 * bool(discourse_markers.ASIDE.search(text))


def _is_remark(text: str) -> bool:
    """Whether a sentence is an outcry, a remark on a result, or the state of the work."""
    is_outcry = text.endswith("!") and not re.search(r"[`\d/]", text)
    return bool(is_outcry or REMARK.match(text) or sentence_patterns.TRANSIENT.search(text))


def _is_vague(text: str) -> bool:
    cues = (discourse_markers.THINKING_ALOUD, sentence_patterns.HEDGE, discourse_markers.COLLOQUIAL)
    return any(cue.search(text) for cue in cues)


def _settles(text: str, kind: Kind, exchange: Exchange, is_refusal: bool) -> bool:
    """Whether a sentence of the user settles something: by its own words, or as an answer.

    What was wrong is found out, not decided. Who muses, or asks in the same breath, tells.
    """
    if kind is Kind.BUG or _is_vague(text):
        return False
    if kind is Kind.DECISION:
        return bool(sentence_patterns.CHOOSING.search(text))
    if kind in DECIDED_KINDS:
        return True
    if kind is Kind.SPEC and sentence_patterns.REQUIREMENT.search(text):
        return not exchange.asks
    is_answer = is_refusal or (exchange.is_reply and not exchange.asks)
    return is_answer and bool(discourse_markers.NORMATIVE.search(text))


def _is_informative(text: str, is_refusal: bool) -> bool:
    """Whether a sentence of the user is no order for the work at hand, question, or courtesy."""
    is_order = (sentence_patterns.DIRECTIVE.match(text) and not is_refusal) or (
        sentence_patterns.ONE_OFF_ORDER.match(text)
        and not sentence_patterns.GENERAL.search(text)
        and not sentence_patterns.CAUSE_LABEL.match(text)
    )
    asks = is_question(text) or any(map(is_question, split_sentences(text)[:1]))
    is_short = len(text.encode()) < MIN_STATEMENT_BYTES
    cues = (discourse_markers.PLEASANTRY, _CHANGED_IT)
    return not (is_order or asks or is_short or any(cue.match(text) for cue in cues))


def iter_user_answers(turn: TurnText) -> Iterator[RecordStatement]:
    """The user's answers to an agent's question, and why it refused a call."""
    text = turn.content.partition("\n")[2].strip()
    status = tool_call_status(turn.content)
    if status == "answered" and text:
        for answer in text.splitlines():
            yield RecordStatement(answer, turn, 3.5, Kind.DECISION, True)
    elif status == "rejected" and len(text.split()) >= 4 and not is_question(text):
        yield RecordStatement(f"The user corrected the agent: {text}", turn, 4.0, Kind.LESSON, True)


def _join_anaphoric(statements: Iterable[str]) -> list[str]:
    """Joins a statement that leans on the one before to it, and a short choice to its reason.

    So is a short refusal. What follows "FYI: ..." is to be remembered with it.
    """
    joined: list[str] = []
    for statement in statements:
        is_after_choice = (
            joined
            and len(joined[-1].encode()) < MIN_STATEMENT_BYTES
            and (
                sentence_patterns.CHOICE.search(joined[-1])
                or discourse_markers.REFUSAL.match(joined[-1])
            )
        )
        is_noted = (
            joined
            and _NOTE_OPENING.match(joined[-1])
            and len(joined[-1]) + len(statement) < MAX_STATEMENT
            and not is_question(statement)
        )
        leans = discourse_markers.ANAPHORIC_START.match(
            strip_opening(statement)
        ) or _ANAPHORIC_ORDER.match(statement)
        if joined and (is_after_choice or is_noted or leans):
            joined[-1] = f"{joined[-1]} {statement}"
        else:
            joined.append(statement)
    return joined
