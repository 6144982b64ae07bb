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
    is_question,
    rate_correction,
    rate_user_sentence,
)
from reverie.domain.text.markdown import split_sentences
from reverie.domain.text.turns import TurnText, trace_status

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
    statements = (s.lstrip(".… ") for s in extract_statements(turn.content))
    for number, statement in enumerate(_join_anaphoric(statements)):
        aside = discourse_markers.ASIDE_OPENING.match(statement)
        text = strip_opening(statement[aside.end() :] if aside else statement)
        if aside:
            text = text[:1].upper() + text[1:]
        if not _is_informative_statement(text, is_refusal):
            continue
        ratings = [rate_user_sentence(part, is_quoted) for part in (text, *split_sentences(text))]
        rating = next(filter(None, ratings), rate_correction(text) if is_refusal else None)
        if rating is None and (is_quoted or not (exchange.is_reply or is_refusal)):
            continue
        kind = rating.kind if rating else Kind.SPEC
        if _is_remark(text) or (
            discourse_markers.OBSERVATION.search(text) and kind not in _OWN_WORD_KINDS
        ):
            continue
        score = 0.5 + (rating.score / 2 if rating else 0.0) + rate_detail(text)
        score += 0.5 * is_refusal
        score -= 2.5 * bool(discourse_markers.ASIDE.search(text))
        is_rule = kind is not Kind.LESSON and rating is not None and rating.score >= RULE_SCORE
        is_report = discourse_markers.COMPLETED_CHANGE.match(text)
        is_own_memory = (
            ((is_rule and not exchange.is_reply) or kind in OWN_MEMORY_KINDS)
            and not discourse_markers.ANAPHORIC_START.match(text)
            and not is_report
            and not sentence_patterns.GUESS.match(text)
            and not discourse_markers.THINKING_ALOUD.search(text[:MAX_OPENING_CHARS])
        )
        if aside and number and not is_own_memory:
            continue
        is_passing = sentence_patterns.FOR_THIS_TIME.search(text)
        if is_own_memory and is_passing and not sentence_patterns.EVERY_TIME.search(text):
            continue
        if rating and (is_own_memory or sentence_patterns.CAUSE_LABEL.match(text)):
            score = rating.score
        is_decided = is_own_memory or _settles(text, kind, exchange, is_refusal)
        if is_decided or kind is Kind.BUG or not _is_vague(text):
            yield RecordStatement(text, turn, score, kind, is_decided, is_own_memory=is_own_memory)


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


def _is_informative_statement(text: str, is_refusal: bool) -> bool:
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
    """The user's answers to an agent's question, and the reason of a refused call, from a trace."""
    text = turn.content.partition("\n")[2].strip()
    status = trace_status(turn.content)
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
