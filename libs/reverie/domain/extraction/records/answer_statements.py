"""The whole reply to a question as statements, without courtesies; none of what is supposed."""

from __future__ import annotations

import re
from dataclasses import replace

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.conversation.exchanges import Exchange
from reverie.domain.extraction.conversation.key_statements import (
    KeyStatement,
    extract_key_statements,
)
from reverie.domain.extraction.records.agent_statements import (
    is_lasting_point,
    is_speculative,
    is_tentative,
    rate_best_part,
)
from reverie.domain.extraction.records.record_statements import (
    RecordStatement,
    strip_line_places,
    strip_opening,
)
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.extraction.wording.salience import extract_exact_terms, is_question
from reverie.domain.text.markdown import split_sentences, without_code

_POLAR_QUESTION = re.compile(
    r"(?:^|[.!?,:;–—-] |\b(?:so|and|but|or) )(?:is|are|was|were|do|does|did|can|could|should|would"
    r"|will|has|have|any)(?:n'?t)? [^!?]*\?",
    re.I,
)
_ANAPHORIC = re.compile(rf"{discourse_markers.ANAPHORIC_START.pattern}|^\w+ also\b", re.I)
_YES = re.compile(
    r"(?:[^.!?\n]{0,40}[.!] )?\W*(?:yes|yep|yeah|yup|exactly|precisely|correct|absolutely"
    r"|definitely)\b",
    re.I,
)
_NO = re.compile(r"(?:[^.!?\n]{0,40}[.!] )?\W*(?:no|nope)\b", re.I)
MIN_SENTENCE_WORDS = 2
"""Words beside code: a name alone repeats the question."""
MAX_OPENER_WORDS = 9
"""Words of a sentence at the head of a reply that names nothing: a remark on the question."""
_REMARKING = re.compile(rf"!$|\b(?:that|this|you|i)\b|{discourse_markers.COLLOQUIAL.pattern}", re.I)
MIN_DEFINITE_SHARE = 0.6


def list_answer_statements(exchange: Exchange) -> list[RecordStatement]:
    """The whole last reply of talk as statements, without its courtesies; [] if it is no answer.

    Who only supposes, recalls or muses gives none: what was supposed at the end of a message is
    left out, without what stands before it the rest would not be whole.
    """
    turn = exchange.last_reply
    if turn is None:
        return []
    points = [
        replace(p, parts=tuple(part for part in p.parts if _is_answering(part)))
        for p in extract_key_statements(turn.content, with_code=True)
        if is_lasting_point(p)
    ]
    points = [point for point in points if point.parts]
    if points and not points[0].is_item and not points[0].lead:
        points[0] = replace(
            points[0], parts=_drop_opening_remark(points[0].parts, len(points) == 1)
        )
    definite = _drop_tentative_parts([point for point in points if point.parts])
    asked = next(filter(is_question, split_sentences(exchange.request)), "")
    asks_whether = _POLAR_QUESTION.search(asked) and " or " not in asked
    polarity = _find_polarity(turn.content) if asks_whether else ""
    statements: list[RecordStatement] = []
    for point in definite:
        text = strip_line_places(strip_opening(point.full_text))
        rating = rate_best_part(point.parts, point.lead)
        kind = Kind.CONTEXT if rating.kind is Kind.TASK else rating.kind
        text = f"{polarity}{text}" if not statements else text
        statements.append(RecordStatement(text, turn, rating.score, kind, False))
    return statements


def _find_polarity(content: str) -> str:
    return "Yes. " if _YES.match(content) else "No. " if _NO.match(content) else ""


def _is_answering(part: str) -> bool:
    prose = without_code(part)
    return not (
        is_question(prose)
        or sentence_patterns.TRANSIENT.search(prose)
        or sentence_patterns.ADDRESSED.search(prose)
        or sentence_patterns.LINE_REFERENCE.search(strip_line_places(prose))
    )


def _drop_opening_remark(parts: tuple[str, ...], is_all: bool) -> tuple[str, ...]:
    """Without the outcry or remark on the question that a reply begins with."""
    first, *rest = parts
    prose = without_code(first)
    words = re.sub(r"`[^`]*`", "", first).split()
    if rest and first.isascii() and len(words) < MIN_SENTENCE_WORDS:
        return tuple(rest)
    is_remark = len(prose.split()) <= MAX_OPENER_WORDS and _REMARKING.search(prose)
    names_something = re.search(r"[`\d/_]", prose) or not prose.isascii()
    return tuple(rest) if is_remark and not names_something and (rest or not is_all) else parts


def _drop_tentative_parts(points: list[KeyStatement]) -> list[KeyStatement]:
    """Without what is supposed at the end; [] if something before it, or most of it, is.

    A beginning that only chats is left out, unless the next sentence leans on it.
    """
    parts = [(n, part) for n, point in enumerate(points) for part in point.parts]
    doubts = [not points[n].is_item and is_tentative(part) for n, part in parts]
    definite = [n for n, doubt in enumerate(doubts) if not doubt]
    if not definite:
        return []
    first, last = definite[0], definite[-1]
    kept = parts[first : last + 1]
    size = sum(len(part) for _, part in kept)
    leans = first and _ANAPHORIC.match(strip_opening(kept[0][1]))
    if (
        leans
        or any(doubts[first : last + 1])
        # What is supposed at the beginning is the answer itself.
        or any(is_speculative(part) for _, part in parts[:first])
        or size < MIN_DEFINITE_SHARE * sum(len(part) for _, part in parts)
        # A name in what is left out is of what was asked for.
        or any(extract_exact_terms(part) for _, part in parts[last + 1 :])
    ):
        return []
    return [
        replace(point, parts=told)
        for n, point in enumerate(points)
        if (told := tuple(part for m, part in kept if m == n))
    ]
