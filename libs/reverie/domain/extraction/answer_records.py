"""Records of talk that settles nothing: a question, and the whole answer to it."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence

from reverie.domain.extraction import discourse_markers, sentence_patterns
from reverie.domain.extraction.decision_records import (
    MAX_PROBLEM_CHARS,
    DecisionRecord,
    select_statements,
)
from reverie.domain.extraction.exchanges import Exchange
from reverie.domain.extraction.matters import find_problem, list_informative_sentences
from reverie.domain.extraction.record_statements import MIN_SCORE, POINTING, RecordStatement
from reverie.domain.extraction.salience import extract_exact_terms, is_question
from reverie.domain.extraction.stated_exchanges import StatedExchange
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import split_sentences

MAX_ANSWER_RECORDS = 2
"""Answers of one topic that are kept: those that say the most."""
MAX_ANSWER_CHARS = 900
"""A longer answer is told by its weightiest statements."""

MIN_SUBJECT_WORDS = 5
"""Words of a question that names nothing of code, but says what it is about."""
_SUBJECT = re.compile(r"`[^`\s]{3,60}`|\b[\w/-]+\.(?:[a-z]{1,4})\b")
"""A name of code or a file."""
_REQUEST = re.compile(
    r"^(?:(?:now|next|then|also|please),? )*(?:let'?s|(?:we|i) (?:need|want|should)|make sure)\b",
    re.I,
)


def build_answer_records(stated: Sequence[StatedExchange]) -> Iterator[DecisionRecord]:
    """Builds a record of each of the weightiest answers, and of what the user tells of the project.

    In order. A question that does not name the subject of the talk is told with it.
    """
    requests = [item.exchange.request for item in stated if item.exchange.request]
    subject = _SUBJECT.search(requests[0]) if requests else None
    records: list[DecisionRecord] = []
    for item in stated:
        record = _build_answer_record(item, subject[0] if subject else "")
        records += [record] if record else _iter_facts(item)
    answers = [record for record in records if _is_mere_answer(record)]
    best = heapq.nlargest(MAX_ANSWER_RECORDS, answers, key=lambda record: record.score)
    return (record for record in records if record not in answers or record in best)


def _is_mere_answer(record: DecisionRecord) -> bool:
    """Whether it answers a question, and names no cause or fix."""
    return record.is_answer and not any(
        sentence_patterns.CAUSE_LABEL.match(s.text) for s in record.statements
    )


def _iter_facts(item: StatedExchange) -> Iterator[DecisionRecord]:
    """Yields what a message tells of the project and asks nothing about."""
    opening = item.exchange.opening
    for statement in item.statements:
        if (
            statement.turn is opening
            and not statement.stands_alone
            and "?" not in statement.turn.content
            and sentence_patterns.PROJECT_STATE.search(statement.text)
            and not POINTING.search(statement.text)
            and not discourse_markers.MUSING.search(statement.text)
        ):
            yield DecisionRecord(statement.text, (statement,), (), (item.exchange,))


def _build_answer_record(item: StatedExchange, subject: str) -> DecisionRecord | None:
    exchange = item.exchange
    question = find_self_contained_question(exchange)
    if question and exchange.previous_subject and subject not in question:
        question = f"About {subject}: {question}"
    told = [s for s in item.statements if s.turn.role == "assistant" and not s.stands_alone]
    if not question or exchange.is_refused or not any(map(_says_much, told)):
        return None
    is_long = sum(len(s.text) for s in told) > MAX_ANSWER_CHARS
    chosen: Sequence[RecordStatement] = (
        select_statements(told, question, (), MAX_ANSWER_CHARS) if is_long else told
    )
    return DecisionRecord(question, tuple(chosen), (), (exchange,)) if chosen else None


def _says_much(statement: RecordStatement) -> bool:
    return statement.score + 0.25 * min(len(statement.exact_terms), 6) >= MIN_SCORE


def find_self_contained_question(exchange: Exchange) -> str:
    """The question or order of a message with the sentences that it leans on; "" if one is missing.

    What somebody merely remarks in the middle of a talk asks nothing.
    """
    sentences = list_informative_sentences(exchange.request)
    is_first = not exchange.previous_subject
    stop = next((n for n, s in enumerate(sentences) if is_question(s)), None)
    if stop is None:
        problem = find_problem([exchange], MAX_PROBLEM_CHARS)
        is_request = is_first or (any(map(_orders, sentences)) and _stands_alone(problem))
        return problem if is_request else ""
    start = 0 if is_first else stop
    while start and not _stands_alone(" ".join(sentences[start : stop + 1])):
        start -= 1
    told = sentences[start : stop + 1]
    # Of a long message, the sentence that names the subject and the question are told.
    texts = [" ".join(told), " ".join(dict.fromkeys((told[0], told[-1]))), told[-1]]
    text = next((t for t in texts if len(t) <= MAX_PROBLEM_CHARS), "")
    return text if text and (is_first or _stands_alone(text)) else ""


def _stands_alone(text: str) -> bool:
    """Whether a text names something, and does not point to what was said before."""
    names = extract_exact_terms(text) or len(content_words(text)) >= MIN_SUBJECT_WORDS
    return bool(names) and not POINTING.search(split_sentences(text)[0])


def _orders(sentence: str) -> bool:
    return bool(
        _REQUEST.match(sentence)
        or sentence_patterns.ONE_OFF_ORDER.match(sentence)
        or sentence_patterns.DIRECTIVE.match(sentence)
    ) and not discourse_markers.MUSING.search(sentence)
