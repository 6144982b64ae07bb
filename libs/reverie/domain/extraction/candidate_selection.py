"""Selection of the best candidates of a topic segment within a length budget.

Greedy: each time the candidate with the greatest gain per power of its length, after Lin and
Bilmes, "Multi-document Summarization via Budgeted Maximization of Submodular Functions" (2010).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from uuid import UUID

from reverie.domain.extraction import sentence_patterns
from reverie.domain.extraction.candidates import (
    MIN_CONTENT_BYTES,
    RULE_SCORE,
    ExtractionCandidate,
    build_command_candidates,
    iter_candidates,
)
from reverie.domain.extraction.topic_segmentation import TopicSegment
from reverie.domain.text.markdown import shorten
from reverie.domain.text.turns import TurnText

# Of what was said in a slice, in characters: the share that its segments may take, and what they
# may take however little or much was said.
BUDGET_SHARE, MIN_BUDGET_CHARS, MAX_BUDGET_CHARS, BUDGET_SLACK = 0.22, 240, 6_000, 15
NOVELTY_GAIN, MAX_NOVEL_TERMS = 0.5, 8
"""What an exact thing that nothing weightier names is worth, and how many count at most."""
LENGTH_EXPONENT = 0.5
"""The power of a draft's length that its weight is divided by: 0 would not count it at all."""
MIN_CUT_CHARS = 90
"""A draft too long for the room that is left is cut behind a thing said, to no less than this."""


def select_candidates(segment: TopicSegment) -> list[ExtractionCandidate]:
    """The weightiest drafts of a slice that there is room for, in order of time.

    What names exact things that none of those taken before it names weighs more. A user's rules
    need no room, nor does what mends a bug whose cause is kept. What a weightier one says too is
    left to it, with its turns.
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
        weights = [
            _compute_gain(candidate, covered_terms) / len(candidate.content) ** LENGTH_EXPONENT
            for candidate in remaining
        ]
        yield remaining.pop(weights.index(max(weights)))


def _compute_gain(candidate: ExtractionCandidate, covered_terms: AbstractSet[str]) -> float:
    """What a draft adds to exact things that are `covered_terms`."""
    return candidate.score + NOVELTY_GAIN * min(
        len(candidate.exact_terms - covered_terms), MAX_NOVEL_TERMS
    )


def _is_fix_of_selected(
    candidate: ExtractionCandidate, selected: Sequence[ExtractionCandidate]
) -> bool:
    """Whether it is the first to say what mends a bug of which its own message names the cause."""
    same_message = [
        other for other in selected if _assistant_turn_ids(other) & _assistant_turn_ids(candidate)
    ]
    return bool(
        sentence_patterns.FIX_REPORT.search(candidate.statement)
        and any(sentence_patterns.ROOT_CAUSE.search(other.statement) for other in same_message)
        and not any(sentence_patterns.FIX_REPORT.search(other.statement) for other in same_message)
    )


def _assistant_turn_ids(candidate: ExtractionCandidate) -> set[UUID]:
    """The messages of the agent that a draft cites."""
    return {turn.id for turn in candidate.turns if turn.role == "assistant"}


def _fit_budget(candidate: ExtractionCandidate, remaining: int) -> bool:
    """Whether there is room for it, cut between two things said where that makes it fit."""
    if len(candidate.content) > remaining + BUDGET_SLACK >= MIN_CUT_CHARS:
        shortened = shorten(candidate.content, remaining + BUDGET_SLACK)
        if len(shortened) >= MIN_CUT_CHARS and not shortened.endswith("…"):
            candidate.content = shortened
    return len(candidate.content) <= remaining + BUDGET_SLACK


def _is_covered_by(candidate: ExtractionCandidate, other: ExtractionCandidate) -> bool:
    """Whether a draft says what another does, by its words."""
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
