"""What a review of somebody's changes found, as one line of its session's memory.

A review decides nothing, so that it makes no record: its advice may be refused, and what is done
about it is told by the work that follows. What it found wrong is still asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from reverie.domain.extraction.conversation.exchanges import Exchange
from reverie.domain.extraction.conversation.key_statements import (
    KeyStatement,
    extract_key_statements,
)
from reverie.domain.extraction.records.matters import cut_clause
from reverie.domain.extraction.records.record_statements import strip_line_places
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.extraction.wording.salience import is_question
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import shorten, split_sentences
from reverie.domain.text.turns import TurnText

MAX_REVIEW_CHARS, MAX_FINDING_CHARS = 800, 180
MIN_NOVEL_SHARE = 0.5

_CONCERN = re.compile(
    r"\b(?:missing|bugs?|breaks?|misleading|unused|silently|wrong(?:ly)?|mismatch|redundant|fails?"
    r"|inconsistent|not (?:set|updated|called|checked|handled|tested)|must|race|leaks?|unclear)\b"
    r"|缺少|错误|未使用",
    re.I,
)
_LEANING = re.compile(r"(?:^|: )(?:this|that|these|those|it|they)\b", re.I)
_ALTERNATIVE = re.compile(r"\beither\b", re.I)
_VERDICT = re.compile(r"^(?:recommendation|verdict|conclusion|overall assessment)\s*[:：]", re.I)
_URGENT = re.compile(
    r"\b(?:critical|must[- ]fix|blockers?|should not be committed|compil(?:e|ation|er) errors?"
    r"|(?:will|does(?:n't| not)) (?:fail to )?compile|security|data loss)\b|严重|必须修",
    re.I,
)


@dataclass(frozen=True)
class ReviewSummary:
    """What a review found, as one line, and the turn that reports it."""

    text: str
    turn: TurnText


def summarize_review(exchange: Exchange) -> ReviewSummary | None:
    """Summarises the review that an exchange holds; None if it is no review or found nothing.

    The urgent findings and the verdict come first; praise, questions and mere wishes are left out.
    """
    if not exchange.is_review:
        return None
    messages = [turn for turn in exchange.replies if turn.role == "assistant"]
    report = max(messages, key=lambda turn: len(turn.content), default=None)
    if report is None:
        return None
    points = [
        replace(p, parts=(x,)) for p in extract_key_statements(report.content) for x in p.parts
    ]
    weighed = [(_weigh_finding(point), point) for point in points]
    ranked = sorted((pair for pair in weighed if pair[0]), key=lambda pair: -pair[0])
    findings: list[str] = []
    covered: frozenset[str] = frozenset()
    leads = set[str]()
    for _, point in ranked:
        if point.lead and point.lead in leads:
            continue
        leads.add(point.lead)
        text = _render_finding(point)
        words = content_words(text)
        is_novel = len(words - covered) >= MIN_NOVEL_SHARE * max(1, len(words))
        if is_novel and sum(map(len, findings)) + len(text) <= MAX_REVIEW_CHARS:
            findings.append(text)
            covered |= words
    title = shorten(exchange.request or exchange.previous_subject, 100)
    heading = f"Review of {title}" if title else "Review"
    return ReviewSummary(f"{heading}: {'; '.join(findings)}", report) if findings else None


def _weigh_finding(point: KeyStatement) -> float:
    """The weight of a point of a review; 0 leaves it out."""
    text = point.full_text
    is_urgent = bool(_URGENT.search(text))
    is_verdict = bool(_VERDICT.match(point.text))
    if (
        is_question(point.text)
        or _LEANING.search(text)
        or _ALTERNATIVE.search(point.full_text)
        or sentence_patterns.TEST_NAME.search(text)
        or (sentence_patterns.LINE_REFERENCE.search(point.lead) and not is_urgent)
        or (discourse_markers.SUGGESTION.search(text) and not is_urgent and not is_verdict)
        or sentence_patterns.NITPICK.search(point.text)
    ):
        return 0.0
    concern = bool(_CONCERN.search(text))
    return 3.0 * is_urgent + 2.5 * is_verdict + 1.0 * concern + 1.0 * (concern and bool(point.lead))


def _render_finding(point: KeyStatement) -> str:
    first = next(iter(split_sentences(point.text)), point.text)
    is_apart = sentence_patterns.LINE_REFERENCE.search(point.lead) or _VERDICT.match(point.text)
    lead = "" if is_apart else point.lead
    text = f"{lead.rstrip(':')}: {first}" if lead and lead.lower() not in first.lower() else first
    text = strip_line_places(text).replace(":, ", ": ")
    return cut_clause(text, MAX_FINDING_CHARS).rstrip(".;:")
