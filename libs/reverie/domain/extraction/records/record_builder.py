"""Builds the decision record of one subtopic, and tells whether a subtopic settled anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

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
    limit_findings,
    select_statements,
)
from reverie.domain.extraction.records.subtopics import (
    AnnotatedExchange,
    find_problem,
    is_general_question,
    list_informative_sentences,
)
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.extraction.wording.salience import is_question
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.turns import TurnText

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
    return any(_is_settled(s, item.exchange) for item in subtopic for s in item.statements) or any(
        True for item in subtopic for _ in iter_rejected(item.exchange)
    )


def _is_settled(statement: RecordStatement, exchange: Exchange) -> bool:
    if statement.is_own_memory:
        return False
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
    refused = [r for exchange in exchanges for r in iter_rejected(exchange)]
    reasons = {r.reason for r in refused if r.is_option}
    statements = [s for s in statements if s.text not in reasons]
    opening_exchanges = [item.exchange for item in subtopic if not _states_rules_only(item)]
    problem = find_problem(opening_exchanges, MAX_PROBLEM_CHARS) or find_problem(
        exchanges, MAX_PROBLEM_CHARS
    )
    last_words = _drop_superseded(statements, exchanges, is_work)
    max_findings = MAX_RECORD_CHARS if is_work else limit_findings(last_words)
    chosen = select_statements(last_words, problem, refused, max_findings) or select_statements(
        last_words, "", refused, max_findings
    )
    alone = " ".join(s.text for item in subtopic for s in item.statements if s.is_own_memory)
    problem = drop_covered_sentences(problem, alone) or problem
    if not problem and all(statement.is_change for statement in chosen):
        return None
    leans = discourse_markers.ANAPHORIC_START.match
    is_fragment = len(chosen) == 1 and leans(chosen[0].text)
    if not chosen or (is_fragment and (not problem or leans(problem))):
        return None
    if is_work and not any(map(_reports_outcome, _drop_request(chosen, exchanges))):
        outcome = _find_outcome(statements)
        has_written = select_write_turns(turn for e in exchanges for turn in e.replies)
        if not (has_written and outcome):
            # What was asked for is no outcome, and neither is what was merely looked up.
            chosen = _drop_request(chosen, exchanges)
            tells = is_question(problem) or any(map(_gives_reason, chosen))
            if has_written or not chosen or not tells:
                return None
        chosen += [outcome] if outcome else []
    told = drop_redundancy(chosen if is_work else _drop_incidental(chosen), refused)
    claims = [e for e in exchanges if e.opening and _is_quoted(e.opening)] if is_work else []
    changes = [s for s in told if _reports_outcome(s)]
    is_cosmetic = claims and changes and all(map(_is_cosmetic, changes))
    if not told or (is_cosmetic and not any(map(_names_fault, told))):
        return None
    answered = [turn for e in claims for turn in e.replies]
    return DecisionRecord(
        problem,
        tuple(told),
        _drop_covered_reasons(refused, chosen),
        tuple(exchanges),
        tuple(_find_restatements(chosen, statements, exchanges)),
        is_claim=bool(claims) and any(s.is_finding or s.turn not in answered for s in told),
    )


def _drop_incidental(chosen: Sequence[RecordStatement]) -> list[RecordStatement]:
    """Without what was merely found beside what was decided; a reason stays."""
    if all(s.is_finding for s in chosen):
        return list(chosen)
    return [s for s in chosen if not s.is_finding or _gives_reason(s)]


def _gives_reason(statement: RecordStatement) -> bool:
    """Whether it tells a reason, or that something is not as it looked."""
    return statement.kind in (Kind.BUG, Kind.LESSON) or bool(_REASON.search(statement.text))


def _drop_request(
    chosen: Sequence[RecordStatement], exchanges: Sequence[Exchange]
) -> list[RecordStatement]:
    request = next((e.opening for e in exchanges if e.opening), None)
    return [s for s in chosen if s.turn is not request]


def _reports_outcome(statement: RecordStatement) -> bool:
    return statement.is_change or statement.is_decided or bool(_OUTCOME.search(statement.text))


def _find_outcome(statements: Iterable[RecordStatement]) -> RecordStatement | None:
    """What the last report that names a change says of it."""
    outcomes = [s for s in statements if s.turn.role == "assistant" and _reports_outcome(s)]
    return max(outcomes, key=lambda s: (s.turn.ordinal, s.score), default=None)


def _drop_superseded(
    statements: Sequence[RecordStatement], exchanges: Sequence[Exchange], is_work: bool
) -> Sequence[RecordStatement]:
    """Without what a later statement tells again, or settles.

    A summing-up settles all before it, causes excepted. Of work, its reports tell what was found
    on the way.
    """
    recap = next((s.turn for s in reversed(statements) if s.is_recap), None)
    if recap:
        return [
            s
            for s in statements
            if (s.is_decided and s.turn.ordinal >= recap.ordinal)
            or sentence_patterns.CAUSE_LABEL.match(s.text)
        ]
    if not is_work:
        return statements
    # What was planned before the first change is told by the report on it.
    first = next((n for n, e in enumerate(exchanges) if select_write_turns(e.replies)), 0)
    reports = {e.last_reply.id for e in exchanges[first:] if e.last_reply}
    return [
        s
        for s in statements
        if s.turn.role != "assistant" or s.turn.id in reports or s.is_decided or _names_fault(s)
    ]


def _is_quoted(opening: TurnText) -> bool:
    return sentence_patterns.QUOTED_REVIEW.search(opening.content[:300]) is not None


def _is_cosmetic(statement: RecordStatement) -> bool:
    """Whether it tells of comments, names and wordings that were changed: the code shows them."""
    lead = LEAD.match(statement.text)
    items = statement.text.split("; ")
    return bool(lead and _COSMETIC.search(lead[0])) or all(map(_COSMETIC.search, items))


def _names_fault(statement: RecordStatement) -> bool:
    return statement.kind is Kind.BUG or bool(sentence_patterns.ROOT_CAUSE.search(statement.text))


def _find_restatements(
    chosen: Sequence[RecordStatement],
    statements: Iterable[RecordStatement],
    exchanges: Iterable[Exchange],
) -> Iterator[TurnText]:
    """Finds the turns that say what was chosen too, in the same words or in nearly the same."""
    for statement in statements:
        if any(is_near_duplicate(statement.words, other.words) for other in chosen):
            yield statement.turn
    for turn in (turn for exchange in exchanges for turn in exchange.replies):
        if turn.role == "assistant" and any(s.text in turn.content for s in chosen):
            yield turn


def _states_rules_only(item: AnnotatedExchange) -> bool:
    """Whether a message only states rules and preferences, which open no subtopic."""
    exchange = item.exchange
    statements = [s for s in item.statements if s.turn is exchange.opening]
    if not statements or not all(s.is_own_memory for s in statements):
        return False
    stated = " ".join(s.text for s in statements)
    return all(sentence in stated for sentence in list_informative_sentences(exchange.request))


def _drop_covered_reasons(
    refused: Sequence[RejectedAlternative], chosen: Sequence[RecordStatement]
) -> tuple[RejectedAlternative, ...]:
    covered = frozenset().union(*(s.words for s in chosen))
    return tuple(
        RejectedAlternative(
            r.proposal,
            "" if len(content_words(r.reason) - covered) < 3 else r.reason,
            r.turn,
        )
        for r in refused[-MAX_REJECTED:]
    )
