"""Selection of the statements of a subtopic that fit into a record and add something."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.records.record_statements import MIN_SCORE, RecordStatement
from reverie.domain.extraction.records.redundancy import drop_repeated_sentences
from reverie.domain.extraction.records.rejected_alternatives import RejectedAlternative
from reverie.domain.extraction.wording import discourse_markers
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import split_sentences

MAX_RECORD_CHARS = 1_400
"""About 350 tokens."""
MAX_REJECTED = 3
MAX_WEIGHED = 100
RECAP_WEIGHT = 100.0
"""A summing-up comes before all else."""
MIN_NOVEL_SHARE = 0.4
"""Share of a statement's words that no chosen statement has."""


def select_statements(
    statements: Sequence[RecordStatement],
    problem: str,
    rejected: Sequence[RejectedAlternative] = (),
) -> list[RecordStatement]:
    """Selects the last summing-up, then the weightiest statements that add something and fit."""
    reserved = sum(len(r.proposal) + 12 for r in rejected[-MAX_REJECTED:])
    remaining = MAX_RECORD_CHARS - len(problem) - reserved - 20
    chosen: list[RecordStatement] = []
    stated = content_words(problem)
    covered: frozenset[str] = frozenset()
    covered_terms: frozenset[str] = frozenset()
    counts = Counter(word for s in statements for word in s.words)
    central = frozenset(word for word, count in counts.items() if count > 1)

    def measure_novelty(s: RecordStatement) -> float:
        # The cause of a problem, and what was done about it, are in the words of the problem.
        is_about = s.is_change or (s.kind is Kind.BUG and s.turn.role == "assistant")
        known = covered if is_about else covered | stated
        return len(s.words - known) / max(1, len(s.words))

    def weigh(s: RecordStatement) -> float:
        if s.is_recap:
            return RECAP_WEIGHT
        novelty = measure_novelty(s)
        words = s.words or frozenset(("",))
        score = s.score + 1.5 * len(words & central) / len(words)
        score += 0.25 * min(len(s.exact_terms - covered_terms), 6)
        return score * (0.3 + 0.7 * novelty)

    pool = heapq.nlargest(MAX_WEIGHED, statements, key=weigh)
    while pool:
        best = max(pool, key=weigh)
        pool.remove(best)
        if weigh(best) < MIN_SCORE:
            break
        is_novel = best.is_recap or measure_novelty(best) >= MIN_NOVEL_SHARE
        if is_novel and len(best.text) < remaining:
            chosen.append(best)
            remaining -= len(best.text) + 1
            covered |= best.words
            covered_terms |= best.exact_terms
    positions = {id(s): n for n, s in enumerate(statements)}
    return sorted(chosen, key=lambda s: (not s.is_recap, positions[id(s)]))


def drop_redundancy(
    statements: Sequence[RecordStatement], rejected: Sequence[RejectedAlternative] = ()
) -> list[RecordStatement]:
    """The statements of a record without what is said twice; what was changed stays.

    The summing-up counts as first, then what was decided, then what was done; of what the user said
    and the agent repeats, the agent's words stay.
    """
    if any(s.is_recap for s in statements):
        statements = [
            s if s.is_recap else replace(s, text=_drop_anaphoric_opening(s.text))
            for s in statements
        ]
    ordered = sorted(
        statements,
        key=lambda s: (not s.is_recap, s.is_finding, s.is_change, s.turn.role == "user"),
    )
    proposals = " ".join(r.proposal for r in rejected[-MAX_REJECTED:])
    kept = drop_repeated_sentences([s.text for s in ordered], proposals)
    texts = dict(zip(map(id, ordered), kept, strict=True))
    changed = (s if s.is_change else replace(s, text=texts[id(s)]) for s in statements)
    return [s for s in changed if s.text]


def _drop_anaphoric_opening(text: str) -> str:
    """Without the sentences at its beginning that refer to what is left out."""
    sentences = split_sentences(text)
    while sentences and discourse_markers.ANAPHORIC_START.match(sentences[0]):
        sentences.pop(0)
    return " ".join(sentences)
