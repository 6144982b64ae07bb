"""Candidate memories: what each message of a conversation states, and the selection of the best.

Selection within a length budget is greedy: each time the candidate with the greatest gain per power
of its length, after Lin and Bilmes, "Multi-document Summarization via Budgeted Maximization of
Submodular Functions" (2010).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from reverie.domain.core.kinds import Kind
from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.extraction import discourse_markers, sentence_patterns
from reverie.domain.extraction.exchanges import (
    Exchange,
    extract_statements,
    is_slash_command,
    split_exchanges,
)
from reverie.domain.extraction.key_statements import KeyStatement, extract_key_statements
from reverie.domain.extraction.salience import (
    MIN_SALIENCE,
    SentenceRating,
    extract_exact_terms,
    rate_agent_statement,
    rate_correction,
    rate_user_sentence,
)
from reverie.domain.extraction.topic_segmentation import TopicSegment
from reverie.domain.extraction.work_log import find_reported_writes, find_verification_commands
from reverie.domain.text.index_terms import index_text
from reverie.domain.text.markdown import shorten
from reverie.domain.text.turns import TurnText, trace_status

MAX_CONTENT = 400
MIN_CONTENT_BYTES = 24
"""Least size in bytes: eight Chinese characters contain as much as a few English words."""
RULE_SCORE = 4.0
"""Weight of a user's rule or preference."""
MIDWAY_EXTRA_SCORE = 0.5
"""Extra weight that a report in the middle of the work needs, compared with one at its end."""
MAX_SUBJECT_CHARS = 60
"""Characters of the request that introduces its outcome."""
OUTCOME_BONUS = 0.5
"""Extra weight of the best point of a last report."""


@dataclass
class ExtractionCandidate:
    """A draft of a memory.

    `statement` is its own text; `write_turns` are the turns that wrote files.
    """

    content: str
    turns: list[TurnText]
    kind: Kind
    score: float
    statement: str = ""
    write_turns: list[TurnText] = field(default_factory=list)
    request: str = ""

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its own text."""
        return frozenset(index_text(self.statement or self.content).split())

    @cached_property
    def exact_terms(self) -> frozenset[str]:
        """The exact things that it names by itself."""
        return extract_exact_terms(self.statement or self.content)


def iter_candidates(segment: TopicSegment) -> Iterator[ExtractionCandidate]:
    for exchange in split_exchanges(segment):
        yield from _iter_user_statements(exchange)
        for turn in exchange.replies:
            if turn.role == "tool":
                yield from _iter_user_answers(turn, exchange)
            elif turn.role == "assistant" and not exchange.refuted:
                yield from _iter_report_candidates(turn, exchange)


def _iter_user_statements(exchange: Exchange) -> Iterator[ExtractionCandidate]:
    """Yields the statements of the user, one at a time."""
    if not exchange.opening or is_slash_command(exchange.request):
        return
    content = exchange.opening.content
    is_quoted = bool(sentence_patterns.QUOTED_REVIEW.search(content[:300]))
    is_correction = bool(
        exchange.previous_subject and discourse_markers.REFUTATION.search(content[:200])
    )
    for statement in extract_statements(content):
        rating = rate_user_sentence(statement, is_quoted) or (
            rate_correction(statement) if is_correction else None
        )
        if rating and rating.score >= MIN_SALIENCE:
            subject = (
                exchange.previous_subject
                if is_correction or discourse_markers.DANGLING_REFERENCE.match(statement)
                else ""
            )
            text = f"{shorten(subject, 70)}: {statement}" if subject else statement
            turns = [exchange.opening]
            yield ExtractionCandidate(
                shorten(text, MAX_CONTENT), turns, rating.kind, rating.score, statement=statement
            )


def _iter_user_answers(turn: TurnText, exchange: Exchange) -> Iterator[ExtractionCandidate]:
    """The user's answer to a question, or the reason of a refusal, as a tool's trace has it."""
    status = trace_status(turn.content)
    user_text = turn.content.partition("\n")[2].strip()
    if status == "answered" and user_text:
        for answer in user_text.splitlines():
            yield ExtractionCandidate(f"Asked and answered: {answer}", [turn], Kind.DECISION, 3.5)
    elif status == "rejected" and len(user_text.split()) >= 4:
        subject_note = f" ({shorten(exchange.subject, 80)})" if exchange.subject else ""
        yield ExtractionCandidate(
            f"The user corrected the agent{subject_note}: {user_text}", [turn], Kind.PREFERENCE, 4.0
        )


def _iter_report_candidates(turn: TurnText, exchange: Exchange) -> Iterator[ExtractionCandidate]:
    """Yields points that a message of the agent reports; more count at the end of an exchange."""
    is_final = exchange.last_reply is turn
    key_points = [point for point in extract_key_statements(turn.content) if _is_informative(point)]
    ratings = [rate_agent_statement(point.text, point.lead) for point in key_points]
    bonuses = [
        0.5 * (exchange.assent is not None) + 0.5 * (is_final and index == 0)
        for index in range(len(key_points))
    ]
    scores = [rating.score + bonus for rating, bonus in zip(ratings, bonuses, strict=True)]
    request_rating = rate_user_sentence(exchange.subject)
    has_task = exchange.request and not (request_rating and request_rating.score >= RULE_SCORE)
    for index, point in enumerate(key_points[1:], start=1):
        # The most important points of a list come first if it was too long for one point.
        scores[index] -= 0.5 * (point.is_item and point.lead == key_points[index - 1].lead != "")
    best_index = scores.index(max(scores)) if is_final and scores and has_task else -1
    for index, (point, rating) in enumerate(zip(key_points, ratings, strict=True)):
        # The outcome of a request is kept if it has content.
        score = scores[index] + OUTCOME_BONUS * (index == best_index and rating.score > 0)
        if score >= MIN_SALIENCE + (0 if is_final else MIDWAY_EXTRA_SCORE):
            yield _build_report_candidate(
                turn, exchange, point, SentenceRating(rating.kind, score), index == best_index
            )


def _is_informative(point: KeyStatement) -> bool:
    """Returns whether a point is no question, and more than a remark on the progress."""
    is_short = len(point.full_text.encode()) < MIN_CONTENT_BYTES
    return not point.text.endswith(("?", "？")) and not (
        is_short and not extract_exact_terms(point.text)
    )


def _build_report_candidate(
    turn: TurnText,
    exchange: Exchange,
    point: KeyStatement,
    rating: SentenceRating,
    is_outcome: bool,
) -> ExtractionCandidate:
    """Builds the candidate of a report. `is_outcome`: it is the outcome of the request above it."""
    is_final = exchange.last_reply is turn
    failure = exchange.failure if rating.kind is Kind.BUG else ""
    text = _make_standalone(point, failure or exchange.subject, bool(failure))
    if is_outcome and not failure:
        text = f"{shorten(exchange.subject, MAX_SUBJECT_CHARS)} → {point.full_text}"
        text = shorten(text if exchange.subject else point.full_text, MAX_CONTENT)
    candidate = ExtractionCandidate(
        text, [turn], rating.kind, rating.score + bool(failure), statement=point.full_text
    )
    candidate.request = exchange.request
    if (failure or is_outcome) and exchange.opening:
        candidate.turns.insert(0, exchange.opening)
    if is_final and exchange.assent:
        candidate.turns.append(exchange.assent)
    candidate.write_turns = find_reported_writes(point.text, exchange.replies, turn, is_final)
    return candidate


def _make_standalone(point: KeyStatement, subject: str, always: bool = False) -> str:
    """Makes a point understandable alone: adds its lead, else the request."""
    text = point.full_text
    is_standalone = bool(extract_paths(text)) or ("`" in text and not point.lead)
    if subject and (
        always or discourse_markers.DANGLING_REFERENCE.match(text) or not is_standalone
    ):
        text = f"{shorten(subject, MAX_SUBJECT_CHARS)}: {text}"
    return shorten(text, MAX_CONTENT)


def build_command_candidates(turns: Iterable[TurnText]) -> list[ExtractionCandidate]:
    return [
        ExtractionCandidate(
            f"Command that checks the work here: `{command}`", [turn], Kind.SKILL, 2.0
        )
        for command, turn in find_verification_commands(turns)
    ]


# Budget in characters: a share of the text in a slice for its segments, with a lower and an upper
# limit.
BUDGET_SHARE, MIN_BUDGET_CHARS, MAX_BUDGET_CHARS, BUDGET_SLACK = 0.22, 240, 6_000, 15
NOVELTY_GAIN, MAX_NOVEL_TERMS = 0.5, 8
"""Gain of an exact term that no weightier draft names, and how many of them count."""
LENGTH_EXPONENT = 0.5
"""The power of a draft's length that its weight is divided by: 0 would not count it at all."""
MIN_CUT_CHARS = 90
"""A draft that exceeds the remaining room is cut after a statement, to no less than this."""


def select_candidates(segment: TopicSegment) -> list[ExtractionCandidate]:
    """Selects the weightiest drafts of a slice that fit, in order of time.

    A draft with exact terms that no selected draft names weighs more. A user's rules need no room,
    and neither does the fix of a bug whose cause is selected. A draft that repeats a weightier one
    is merged into it, with its turns.
    """
    candidates = [
        candidate
        for candidate in iter_candidates(segment)
        if len(candidate.content.encode()) >= MIN_CONTENT_BYTES
    ]
    remaining = compute_char_budget(segment.turns, BUDGET_SHARE, MIN_BUDGET_CHARS, MAX_BUDGET_CHARS)
    selected: list[ExtractionCandidate] = []
    for candidate in _iter_by_gain(candidates, selected):
        duplicate = next((other for other in selected if _is_covered_by(other, candidate)), None)
        if duplicate:
            duplicate.turns += candidate.turns
        elif (
            candidate.score >= RULE_SCORE
            or _is_fix_of_selected(candidate, selected)
            or _fit_budget(candidate, remaining)
        ):
            selected.append(candidate)
            remaining -= len(candidate.content)
    selected_ids = {id(candidate) for candidate in selected}
    return [
        candidate for candidate in candidates if id(candidate) in selected_ids
    ] + build_command_candidates(segment.turns)


def _iter_by_gain(
    candidates: Sequence[ExtractionCandidate], selected: Sequence[ExtractionCandidate]
) -> Iterator[ExtractionCandidate]:
    """The drafts, each time the one that adds most to those `selected` by then."""
    remaining = list(candidates)
    while remaining:
        covered_terms = frozenset[str]().union(*(candidate.exact_terms for candidate in selected))
        weights: list[float] = []
        for candidate in remaining:
            novel_terms = min(len(candidate.exact_terms - covered_terms), MAX_NOVEL_TERMS)
            gain = candidate.score + NOVELTY_GAIN * novel_terms
            weights.append(gain / len(candidate.content) ** LENGTH_EXPONENT)
        yield remaining.pop(weights.index(max(weights)))


def _is_fix_of_selected(
    candidate: ExtractionCandidate, selected: Sequence[ExtractionCandidate]
) -> bool:
    """Returns whether it is the first fix of a bug whose cause its own message names."""
    turn_ids = {turn.id for turn in candidate.turns if turn.role == "assistant"}
    same_message = [
        other
        for other in selected
        if any(turn.role == "assistant" and turn.id in turn_ids for turn in other.turns)
    ]
    return bool(
        sentence_patterns.FIX_REPORT.search(candidate.statement)
        and any(sentence_patterns.ROOT_CAUSE.search(other.statement) for other in same_message)
        and not any(sentence_patterns.FIX_REPORT.search(other.statement) for other in same_message)
    )


def _fit_budget(candidate: ExtractionCandidate, remaining: int) -> bool:
    """Returns whether the draft fits, after a cut between two statements if that is needed."""
    if len(candidate.content) > remaining + BUDGET_SLACK >= MIN_CUT_CHARS:
        shortened = shorten(candidate.content, remaining + BUDGET_SLACK)
        if len(shortened) >= MIN_CUT_CHARS and not shortened.endswith("…"):
            candidate.content = shortened
    return len(candidate.content) <= remaining + BUDGET_SLACK


def _is_covered_by(candidate: ExtractionCandidate, other: ExtractionCandidate) -> bool:
    """Returns whether a draft repeats another, by its words."""
    is_contained = (
        bool(other.statement) and other.statement in candidate.content and other.score < RULE_SCORE
    )
    return is_contained or is_near_duplicate(candidate.words, other.words)


def compute_char_budget(turns: Sequence[TurnText], share: float, minimum: int, maximum: int) -> int:
    total_chars = sum(len(turn.content) for turn in turns if turn.role in {"user", "assistant"})
    return min(max(int(total_chars * share), minimum), maximum)


def is_near_duplicate(first: AbstractSet[str], second: AbstractSet[str]) -> bool:
    shared, smaller = len(first & second), min(len(first), len(second))
    return smaller > 0 and (shared / len(first | second) >= 0.65 or shared / smaller >= 0.88)
