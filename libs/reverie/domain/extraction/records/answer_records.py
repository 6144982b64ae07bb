"""Records of talk that settles nothing: a question, and the whole answer to it."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence

from reverie.domain.extraction.conversation.exchanges import Exchange
from reverie.domain.extraction.records.answer_statements import list_answer_statements
from reverie.domain.extraction.records.decision_records import MAX_PROBLEM_CHARS, DecisionRecord
from reverie.domain.extraction.records.record_builder import (
    build_record,
    fit_record,
    is_user_decision,
)
from reverie.domain.extraction.records.record_statements import ANAPHOR, RecordStatement
from reverie.domain.extraction.records.statement_selection import (
    MAX_RECORD_CHARS,
    drop_redundancy,
    select_statements,
)
from reverie.domain.extraction.records.subtopics import (
    AnnotatedExchange,
    find_problem,
    list_informative_sentences,
)
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.extraction.wording.salience import extract_exact_terms, is_question
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import split_sentences

MAX_ANSWER_RECORDS = 2
"""Answers of one topic that are kept: those that say the most."""

MIN_ANSWER_SCORE = 0.75
MIN_SUBJECT_WORDS = 5
"""Words of a question that names nothing of code, but says what it is about."""
_SUBJECTS = (
    re.compile(
        r"`?\b[\w/-]{1,200}+\.(?:py|go|rs|rb|java|kt|jsx?|tsx?|c|cc|cpp|h|cs|sql|sh|toml|ya?ml|md)\b`?"
    ),
    re.compile(r"`(?!v?[\d.]+|[0-9a-f]{7,40}`)[^`\s-]{3,60}`"),
)
"""A file, or else a name of code that is no version or commit."""
_WONDERING = re.compile(
    r"^(?:(?:so|and|but|also|then)[, ]+)?i(?:'m| am| was)(?: just)? (?:wondering|curious),? "
    r"(?:if |whether |about )?",
    re.I,
)
_OF_YOU = re.compile(r"\byou(?:r|'re|'ve)?\b", re.I)
_TOLD_BY_ONESELF = re.compile(r"\b(?:i|my|me|you|your)\b", re.I)
_ACTIVITY = re.compile(
    r"(?:(?:i|we)(?: was|'m| were)?|was|just|been|got) (?:just |me )?\w+ing\b", re.I
)
# Who asks so is told what somebody thinks.
_OPINION = re.compile(
    r"\b(?:do you (?:think|remember|recall)|(?:your|any|the) (?:thoughts|thinking|discussion)"
    r"|philosoph\w+|did you ever|what'?s next|(?:how'?s|how is|how has)\b[^?]{0,60}\b(?:work|go)ing"
    r"|are we (?:confident|sure|happy)|anticipate|be worth|(?:we|you) ever consider)\b",
    re.I,
)
_ASKING = re.compile(
    r"(?:^|, |[:;–—-] )(?:(?:and|or|but|so|quick status check|please|also),? )*"
    r"(?:what|why|how|which|who|where|when|is|are|was|were|do|does|did|can|could|should|would|will"
    r"|has|have|tell|explain|show|remind)(?:'s|n'?t|'re)?\b|^[^\x00-\x7f]",
    re.I,
)
_MUSED_QUESTION = re.compile(
    r"\b(?:i(?:'d| would)|if i were|have we considered|maybe|perhaps|i (?:assume|guess|mean)"
    r"|worth(?:while)?|any plans?|just (?:part|me))\b",
    re.I,
)
_ANAPHORIC_QUESTION = re.compile(
    r"\b(?:is|are|was|were|do|does|did|has|have|can|could|should|would|will|about|of|with|for|like|on"
    r"|to|from|in|into|at|under|by|given) that\b(?=\s*(?:[,?.!`—–-]|\w+\b"
    r"(?!\s+\w+\s+(?:is|are|was|were))))|\bthat'?s\b",
    re.I,
)
_REQUEST = re.compile(
    r"^(?:(?:now|next|then|also|please),? )*(?:let'?s|(?:we|i) (?:need|want|should)|make sure)\b",
    re.I,
)


def build_answer_records(stated: Sequence[AnnotatedExchange]) -> Iterator[DecisionRecord]:
    """Builds a record of each of the weightiest answers, and of what the user tells of the project.

    In order. A question that does not name the subject of the talk is told with it.
    """
    requests = [item.exchange.request for item in stated if item.exchange.request]
    found = (pattern.search(requests[0]) for pattern in _SUBJECTS if requests)
    subject = next((match[0] for match in found if match), "")
    records: list[DecisionRecord] = []
    for item in stated:
        if records and not item.exchange.request and item.exchange.opening:
            # Who says no more than yes has what was proposed done.
            done = [s for s in list_answer_statements(item.exchange) if s.is_change]
            records[-1] = records[-1].extend(done, item.exchange)
            continue
        record = _build_answer_record(item, subject)
        if record is None and any(map(is_user_decision, item.statements)):
            record = build_record([item], is_work=False)
        records += [record] if record else _iter_facts(item)
    answers = [record for record in records if _is_plain_answer(record)]
    best = heapq.nlargest(MAX_ANSWER_RECORDS, answers, key=lambda record: record.score)
    return (fit_record(r) for r in records if r not in answers or r in best)


def _is_plain_answer(record: DecisionRecord) -> bool:
    """Whether it answers a question, and names no cause or fix."""
    return record.is_answer and not any(
        sentence_patterns.CAUSE_LABEL.match(s.text) for s in record.statements
    )


def _iter_facts(item: AnnotatedExchange) -> Iterator[DecisionRecord]:
    """Yields what a message tells of the project and asks nothing about."""
    opening = item.exchange.opening
    for statement in item.statements:
        if (
            statement.turn is opening
            and not statement.is_own_memory
            and not item.exchange.previous_subject
            and "?" not in statement.turn.content
            and len(statement.text) <= MAX_PROBLEM_CHARS
            and sentence_patterns.PROJECT_STATE.search(statement.text)
            and not ANAPHOR.search(statement.text)
            and not discourse_markers.THINKING_ALOUD.search(statement.text)
        ):
            yield DecisionRecord(statement.text, (statement,), (), (item.exchange,))


def _build_answer_record(item: AnnotatedExchange, subject: str) -> DecisionRecord | None:
    exchange = item.exchange
    question = find_self_contained_question(exchange, subject)
    if subject not in question and is_question(question):
        if not extract_exact_terms(question):
            return None
        question = f"About {subject}: {question}"
    told = list_answer_statements(exchange)
    if (
        not question
        or exchange.is_refused
        or _ends_in_question(exchange)
        or not _is_informative(told)
    ):
        return None
    # Of an answer that is too long for a record, the weightiest statements stay.
    is_long = len(question) + sum(len(s.text) for s in told) > MAX_RECORD_CHARS
    selected = select_statements(told, question) if is_long else told
    if not selected:
        return None
    composed = drop_redundancy(selected)
    return DecisionRecord(question, tuple(composed), (), (exchange,), is_whole=not is_long)


def _ends_in_question(exchange: Exchange) -> bool:
    """Whether the reply ends in a question on the subject, so that it is no last word."""
    reply = exchange.last_reply.content if exchange.last_reply else ""
    end = [s for s in split_sentences(reply)[-2:] if s.rstrip(" *_`)").endswith("?")]
    offers = (discourse_markers.OFFER, discourse_markers.PROPOSAL)
    return any(_OF_YOU.search(s) and not any(cue.search(s) for cue in offers) for s in end)


def _is_informative(statements: Sequence[RecordStatement]) -> bool:
    """Whether an answer tells a cause or a change, or names things."""
    if not statements or any("```" in s.text for s in statements):
        return bool(statements)
    names = frozenset().union(*(s.exact_terms for s in statements))
    return max(s.score for s in statements) + 0.25 * min(len(names), 6) >= MIN_ANSWER_SCORE


def find_self_contained_question(exchange: Exchange, subject: str = "") -> str:
    """The question or order of a message with the sentences that it leans on; "" if one is missing.

    `subject`: what the talk is about, told where the question does not name it. What somebody
    merely remarks in the middle of a talk asks nothing.
    """
    sentences = list_informative_sentences(exchange.request)
    stop = next((n for n, s in enumerate(sentences) if is_question(s)), None)
    if stop is None:
        return _find_request(exchange, sentences)
    asked = [_WONDERING.sub("", s) for s in sentences[stop:] if is_question(s)]
    asked = [s[:1].upper() + s[1:] for s in asked]
    if not _ASKING.search(asked[0]) or any(map(_asks_opinion, asked)):
        return ""
    alone = " ".join(asked)
    points = ANAPHOR.search(alone) or _points_back(alone)
    if subject not in alone and not points and extract_exact_terms(alone):
        return f"About {subject}: {alone}" if len(alone) < MAX_PROBLEM_CHARS else ""
    return _tell_with_context(asked, sentences[:stop], not exchange.previous_subject)


def _find_request(exchange: Exchange, sentences: Sequence[str]) -> str:
    """What a message without a question wants to be told or done; "" if it only remarks."""
    problem = find_problem([exchange], MAX_PROBLEM_CHARS)
    is_observation = discourse_markers.OBSERVATION.match(exchange.request)
    if not problem or is_observation or _is_anecdote(problem):
        return ""
    if not exchange.previous_subject:
        return problem
    # Beside a report, "Why?" says nothing by itself.
    is_report = exchange.asks and not _is_personal(problem)
    is_order = is_report or any(map(_orders, sentences))
    return problem if is_order and _is_self_contained(problem) else ""


def _tell_with_context(asked: Sequence[str], before: Sequence[str], is_first: bool) -> str:
    """The questions of a message with the sentences that they lean on; "" if one is missing."""
    start = len(before)
    while start and not _is_self_contained(" ".join([*before[start:], *asked])):
        start -= 1
    context = before[start:]
    is_personal = not is_first and _is_personal(" ".join(context))
    if is_personal or any(map(discourse_markers.THINKING_ALOUD.search, context)):
        return ""
    # Of a long message, the sentence that names the subject and the question are told.
    told = [*context, *asked]
    texts = [" ".join(told), " ".join(dict.fromkeys((told[0], *asked))), " ".join(asked)]
    text = next((t for t in texts if len(t) <= MAX_PROBLEM_CHARS), "")
    is_named = text and (_is_self_contained(text) or (is_first and not _points_back(text)))
    return text if is_named else ""


def _is_personal(text: str) -> bool:
    return bool(_TOLD_BY_ONESELF.search(text) or discourse_markers.COLLOQUIAL.search(text))


def _asks_opinion(question: str) -> bool:
    """Whether a question asks for an opinion, or only muses."""
    cues = (_OPINION, discourse_markers.COLLOQUIAL, _MUSED_QUESTION)
    return any(cue.search(question) for cue in cues)


def _is_anecdote(problem: str) -> bool:
    """Whether somebody only tells what they saw, supposed or were doing."""
    first = split_sentences(problem)[0]
    points = ANAPHOR.search(first) and not sentence_patterns.USER_PROBLEM.search(first)
    is_observation = discourse_markers.OBSERVATION.match(first) or _ACTIVITY.match(first)
    return bool(points or is_observation or discourse_markers.THINKING_ALOUD.search(problem))


def _points_back(text: str) -> bool:
    return _ANAPHORIC_QUESTION.search(split_sentences(text)[0]) is not None


def _is_self_contained(text: str) -> bool:
    """Whether a text names something, and does not point to what was said before."""
    first = split_sentences(text)[0]
    names = extract_exact_terms(first)
    told = first if names else text
    least = MIN_SUBJECT_WORDS + text.endswith("?")
    long_words = sum(len(word) > 3 or not word.isascii() for word in content_words(text))
    is_named = names or extract_exact_terms(text) or long_words >= least
    return bool(is_named) and not (ANAPHOR.search(told) or _ANAPHORIC_QUESTION.search(told))


def _orders(sentence: str) -> bool:
    return bool(
        _REQUEST.match(sentence)
        or sentence_patterns.ONE_OFF_ORDER.match(sentence)
        or sentence_patterns.DIRECTIVE.match(sentence)
    ) and not discourse_markers.THINKING_ALOUD.search(sentence)
