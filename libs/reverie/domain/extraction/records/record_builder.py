"""Builds the decision record of one subtopic, and tells whether a subtopic settled anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.conversation.exchanges import Exchange
from reverie.domain.extraction.conversation.work_log import select_write_turns
from reverie.domain.extraction.records.decision_records import MAX_PROBLEM_CHARS, DecisionRecord
from reverie.domain.extraction.records.record_statements import (
    DECIDED_KINDS,
    LEAD,
    RecordStatement,
    is_near_duplicate,
)
from reverie.domain.extraction.records.record_text import (
    drop_covered_sentences,
)
from reverie.domain.extraction.records.rejected_alternatives import (
    RejectedAlternative,
    iter_rejected,
)
from reverie.domain.extraction.records.statement_selection import (
    MAX_RECORD_CHARS,
    MAX_REJECTED,
    drop_redundancy,
    select_statements,
)
from reverie.domain.extraction.records.subtopics import (
    AnnotatedExchange,
    find_problem,
    is_general_question,
)
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.extraction.wording.salience import is_question
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import shorten
from reverie.domain.text.turns import TurnText

MAX_LABELS_CHARS = 20
"""The label of a line, its end, and the line break after the problem."""

_COSMETIC = re.compile(
    r"\b(?:comments?|test cases?|unused|typos?|wording|grammar|blank lines?|visual\w*|whitespace"
    r"|indentation)\b|\brenam(?:ed|es)\b",
    re.I,
)
_OUTCOME = re.compile(
    r"\b(?:now|no longer|fixed|added|changed|removed|renamed|moved|updated|replaced|reverted"
    r"|created|implemented|the fix|the change|already)\b|(?:现在|已|修复|改为)",
    re.I,
)
_REASON = re.compile(
    r"\b(?:because|since|due to|so|cause[sd]?|reason|not)\b|n't\b|因为|由于|原因", re.I
)


def settles(subtopic: Sequence[AnnotatedExchange]) -> bool:
    """Whether a subtopic of mere talk settles something, and does not only ask and answer.

    What a first message wants is its request; what the agent repeats settles nothing by itself.
    """
    return any(
        any(_is_settled(s, item.exchange) for s in item.statements)
        or any(True for _ in iter_rejected(item.exchange))
        for item in subtopic
    )


def _is_settled(statement: RecordStatement, exchange: Exchange) -> bool:
    if statement.turn.role != "user":
        opening = exchange.opening.content if exchange.opening else ""
        is_musing = discourse_markers.THINKING_ALOUD.search(f"{opening} {statement.text}")
        is_decided = statement.is_decided and exchange.is_reply
        return statement.is_recap or (is_decided and not is_musing)
    if sentence_patterns.CAUSE_LABEL.match(statement.text):
        return True
    return is_user_decision(statement) and exchange.previous_subject != ""


def is_user_decision(statement: RecordStatement) -> bool:
    """Whether the user decides something in it."""
    return (
        statement.turn.role == "user"
        and statement.is_decided
        and not statement.is_own_memory
        and statement.kind in DECIDED_KINDS
    )


def build_record(subtopic: Sequence[AnnotatedExchange], is_work: bool) -> DecisionRecord | None:
    """Builds the record of one subtopic; None if nothing was settled.

    `is_work`: whether the agent used tools in the topic, and did not only talk about it.
    """
    exchanges = [item.exchange for item in subtopic]
    statements = [
        statement
        for item in subtopic
        if not (is_work and is_general_question(item.exchange))
        for statement in item.statements
        if not statement.is_own_memory
    ]
    rejected = [r for exchange in exchanges for r in iter_rejected(exchange)]
    problem = find_problem(exchanges, MAX_PROBLEM_CHARS)
    candidates = _drop_superseded(statements, exchanges)
    selected = select_statements(candidates, problem, rejected) or select_statements(
        candidates, "", rejected
    )
    own = " ".join(s.text for item in subtopic for s in item.statements if s.is_own_memory)
    problem = drop_covered_sentences(problem, own) or problem
    if _is_fragment(selected, problem):
        return None
    if is_work:
        selected = _require_outcome(selected, statements, problem, exchanges)
    composed = drop_redundancy(selected if is_work else _drop_incidental(selected), rejected)
    claims = [e for e in exchanges if is_work and _quotes_review(e)]
    if not composed or (claims and _is_cosmetic_change(composed)):
        return None
    answers = [turn for e in claims for turn in e.replies]
    record = DecisionRecord(
        problem,
        tuple(composed),
        _drop_covered_reasons(rejected, selected),
        tuple(exchanges),
        tuple(_find_restatements(selected, statements, exchanges)),
        is_claim=bool(claims) and any(s.is_finding or s.turn not in answers for s in composed),
    )
    return fit_record(record)


def fit_record(record: DecisionRecord) -> DecisionRecord:
    """The record within its limit: reasons of refusals go first, then what weighs least.

    A statement that does not fit alone is cut.
    """
    if len(record.content) > MAX_RECORD_CHARS:
        record = replace(record, refused=tuple(replace(r, reason="") for r in record.refused))
    while len(record.content) > MAX_RECORD_CHARS and len(record.statements) > 1:
        least = min(record.statements, key=lambda s: (s.is_recap, _reports_outcome(s), s.score))
        record = replace(record, statements=tuple(s for s in record.statements if s is not least))
    while len(record.content) > MAX_RECORD_CHARS and record.refused:
        record = replace(record, refused=record.refused[1:])
    if len(record.content) > MAX_RECORD_CHARS:
        [last] = record.statements
        room = MAX_RECORD_CHARS - len(record.problem) - MAX_LABELS_CHARS
        record = replace(record, statements=(replace(last, text=shorten(last.text, room)),))
    return record


def _is_fragment(selected: Sequence[RecordStatement], problem: str) -> bool:
    """Whether the statements are none, or do not say what they are about."""
    if not problem and all(statement.is_change for statement in selected):
        return True
    is_anaphoric = discourse_markers.ANAPHORIC_START.match
    starts_anaphoric = len(selected) == 1 and is_anaphoric(selected[0].text)
    return not selected or bool(starts_anaphoric and (not problem or is_anaphoric(problem)))


def _drop_superseded(
    statements: Sequence[RecordStatement], exchanges: Sequence[Exchange]
) -> Sequence[RecordStatement]:
    """Without what a later statement repeats or settles.

    A summing-up settles all before it, causes excepted. What an agent planned or found before its
    first change is in its report on the change, unless the user decided it or it is a fault.
    """
    recap = next((s.turn for s in reversed(statements) if s.is_recap), None)
    if recap:
        return [
            s
            for s in statements
            if (s.is_decided and s.turn.ordinal >= recap.ordinal)
            or sentence_patterns.CAUSE_LABEL.match(s.text)
        ]
    first = next((n for n, e in enumerate(exchanges) if select_write_turns(e.replies)), 0)
    reports = {e.last_reply.id for e in exchanges[first:] if e.last_reply}
    return [
        s
        for s in statements
        if s.turn.role != "assistant" or s.turn.id in reports or s.is_decided or _names_fault(s)
    ]


def _require_outcome(
    selected: list[RecordStatement],
    statements: Sequence[RecordStatement],
    problem: str,
    exchanges: Sequence[Exchange],
) -> list[RecordStatement]:
    """The statements of a work record with an outcome among them; [] if the work had none.

    Work that changed nothing has one if it answers a question or gives a reason.
    """
    request = next((e.opening for e in exchanges if e.opening), None)
    reported = [s for s in selected if s.turn is not request]
    if any(map(_reports_outcome, reported)):
        return selected
    has_written = select_write_turns(turn for e in exchanges for turn in e.replies)
    outcomes = [s for s in statements if s.turn.role == "assistant" and _reports_outcome(s)]
    last = max(outcomes, key=lambda s: (s.turn.ordinal, s.score), default=None)
    if last and has_written:
        return [*selected, last]
    if has_written or not (is_question(problem) or any(map(_gives_reason, reported))):
        return []
    return [*reported, last] if reported and last else reported


def _drop_incidental(selected: Sequence[RecordStatement]) -> list[RecordStatement]:
    """Without what was merely found beside what was decided; a reason stays."""
    if all(s.is_finding for s in selected):
        return list(selected)
    return [s for s in selected if not s.is_finding or _gives_reason(s)]


def _quotes_review(exchange: Exchange) -> bool:
    opening = exchange.opening.content[:300] if exchange.opening else ""
    return sentence_patterns.QUOTED_REVIEW.search(opening) is not None


def _is_cosmetic_change(statements: Sequence[RecordStatement]) -> bool:
    """Whether all that was changed are comments, names and wordings, and no fault was found."""
    changes = [s for s in statements if _reports_outcome(s)]
    faults = map(_names_fault, statements)
    return bool(changes) and all(map(_is_cosmetic, changes)) and not any(faults)


def _is_cosmetic(statement: RecordStatement) -> bool:
    """Whether it reports comments, names and wordings that were changed: the code shows them."""
    lead = LEAD.match(statement.text)
    items = statement.text.split("; ")
    return bool(lead and _COSMETIC.search(lead[0])) or all(map(_COSMETIC.search, items))


def _gives_reason(statement: RecordStatement) -> bool:
    """Whether it gives a reason, or says that something is not as it looked."""
    return statement.kind in (Kind.BUG, Kind.LESSON) or bool(_REASON.search(statement.text))


def _reports_outcome(statement: RecordStatement) -> bool:
    return statement.is_change or statement.is_decided or bool(_OUTCOME.search(statement.text))


def _names_fault(statement: RecordStatement) -> bool:
    return statement.kind is Kind.BUG or bool(sentence_patterns.ROOT_CAUSE.search(statement.text))


def _find_restatements(
    selected: Sequence[RecordStatement],
    statements: Iterable[RecordStatement],
    exchanges: Iterable[Exchange],
) -> Iterator[TurnText]:
    """Finds the turns that say what was selected too, in the same words or in nearly the same."""
    for statement in statements:
        if any(is_near_duplicate(statement.words, other.words) for other in selected):
            yield statement.turn
    for turn in (turn for exchange in exchanges for turn in exchange.replies):
        if turn.role == "assistant" and any(s.text in turn.content for s in selected):
            yield turn


def _drop_covered_reasons(
    rejected: Sequence[RejectedAlternative], selected: Sequence[RecordStatement]
) -> tuple[RejectedAlternative, ...]:
    covered = frozenset().union(*(s.words for s in selected))
    return tuple(
        replace(r, reason="") if len(content_words(r.reason) - covered) < 3 else r
        for r in rejected[-MAX_REJECTED:]
    )
