"""Salience of a sentence: whether it is worth a memory, and of which kind, English and Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reverie.domain.core.kinds import Kind
from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.text.markdown import without_code

_CODE_SPAN = re.compile(r"`[^`]*`")
_FIRST_PERSON = re.compile(r"\b(?:we|i|let'?s|our|us)\b|我们", re.I)
_MEASURE = re.compile(
    r"\b\d+(?:\.\d+)?\s?(?:%|ms|s|sec(?:ond)?s?|min(?:ute)?s?|h(?:ours?)?|days?|[kmg]i?b|tokens?"
    r"|requests?|connections?|retries|chars?|characters|lines?)\b|\b\d+-(?:minute|second|hour|day)"
    r"|\w=\d",
    re.I,
)
_EXACT_NAME = re.compile(
    r"`[^`]+`|\b[A-Z]{2,}_[A-Z_]+\b|\b[a-z]+_[a-z_]+\b|\b[a-z]+[A-Z]\w+\b|\b[A-Z][a-z]+[A-Z]\w*\b"
    r"|\b(?:GET|POST|PUT|PATCH|DELETE) /\S*|\bv?\d+\.\d+\b"
    r"|\b[A-Z][\w.]{1,60}+ (?:and|or|with|for) [A-Z]"
)

_FIGURE = re.compile(r"\b\d[\d.,:]*\b")
# A capital within a sentence, and text in quotes.
_PROPER_NAME = re.compile(
    r"(?<=[a-z0-9,;)/] )[A-Z][A-Za-z0-9]*(?:[.+#-][A-Za-z0-9]+)*\b"
    r"|(?<!\w)(['\"])[^'\"\n]{2,60}\1"
)


@dataclass(frozen=True)
class SentenceRating:
    """The kind of memory that a sentence would become. Below `MIN_SALIENCE`, `score` drops it."""

    kind: Kind
    score: float


MIN_SALIENCE = 1.0

# In order of precedence: the first match gives the kind of a user's statement.
_USER_PATTERNS: tuple[tuple[Kind, re.Pattern[str], float], ...] = (
    (Kind.PREFERENCE, sentence_patterns.HABIT, 4.0),
    (Kind.IDENTITY, discourse_markers.IDENTITY, 3.0),
    (Kind.CONVENTION, sentence_patterns.RULE, 4.0),
    (Kind.PREFERENCE, sentence_patterns.CONDUCT_REQUEST, 4.0),
    (Kind.TASK, sentence_patterns.DEFERRED, 3.0),
    (Kind.SPEC, sentence_patterns.ENSURE, 3.0),
    (Kind.DECISION, sentence_patterns.CHOICE, 3.5),
    (Kind.BUG, sentence_patterns.CAUSE_LABEL, 3.5),
    (Kind.BUG, sentence_patterns.USER_PROBLEM, 2.0),
    (Kind.SPEC, sentence_patterns.REQUIREMENT, 3.0),
    (Kind.CONTEXT, sentence_patterns.PROJECT_STATE, 3.0),
)
# Kinds that become a decision if the lead announces a choice.
_UPGRADABLE_KINDS = frozenset({Kind.CONTEXT, Kind.SPEC})
# What an agent itself calls a decision, at the head of a sentence.
DECISION_LABEL = re.compile(r"\W*decision\W{0,2}[:：]|\W*决定[:：]", re.I)
# Kinds of facts that a request for a single task mentions in passing.
_INCIDENTAL_KINDS = frozenset({Kind.SPEC, Kind.CONTEXT, Kind.BUG})


def rate_user_sentence(sentence: str, is_quoted: bool = False) -> SentenceRating | None:
    """Rates a user's sentence; None for a question, a yes, or a bare request.

    In quoted text, such as a reviewer's comment or a plan, only choices count.
    """
    bare = _CODE_SPAN.sub("` `", sentence)
    asks_to_remember = bool(discourse_markers.REMEMBER.search(bare))
    if (is_question(bare) and not asks_to_remember) or bare.endswith((":", "：")):
        return None
    if discourse_markers.SUGGESTION.search(bare):
        return None
    is_directive = sentence_patterns.DIRECTIVE.match(bare)
    if len(re.sub(r"\([^()]*\)", "", bare).split()) < 3 and len(bare.encode()) < 24:
        return None
    decision_rows = [
        row for row in _USER_PATTERNS if row[0] is Kind.DECISION and _FIRST_PERSON.search(bare)
    ]
    table = decision_rows if is_quoted else [] if is_question(bare) else _USER_PATTERNS
    for kind, cue, score in table:
        if cue.search(bare) and not (is_directive and kind in _INCIDENTAL_KINDS):
            return SentenceRating(kind, score + asks_to_remember)
    if asks_to_remember and not is_quoted:
        return SentenceRating(Kind.CONTEXT if is_question(bare) else Kind.CONVENTION, 4.0)
    if not is_quoted and _count_exact_details(sentence) >= 2 and not is_directive:
        return SentenceRating(Kind.SPEC, 2.5)
    return None


def rate_correction(sentence: str) -> SentenceRating | None:
    """Rates a sentence in which a user corrects the agent."""
    is_substantial = len(sentence.split()) >= 6 or len(sentence.encode()) > 1.5 * len(sentence) > 12
    return (
        SentenceRating(Kind.LESSON, 4.0) if is_substantial and not is_question(sentence) else None
    )


def is_question(text: str) -> bool:
    """Returns whether a sentence is a question."""
    return text.rstrip(" \"'`)").endswith(("?", "？")) or bool(
        sentence_patterns.QUESTION.match(text)
    )


def rate_agent_statement(text: str, lead: str = "") -> SentenceRating:
    """Rates a point of an agent's report. `lead`: the heading above it."""
    text = without_code(text)
    bare = _CODE_SPAN.sub("` `", text)
    full_text = _CODE_SPAN.sub("` `", f"{lead}: {text}" if lead else text)
    if sentence_patterns.LOCATION_POINTER.search(text):
        return SentenceRating(Kind.REFERENCE, -9.0)
    is_how_to = bool(sentence_patterns.HOW_TO.search(f"{lead}: {text}" if lead else text))
    kind = Kind.SKILL if is_how_to else _classify_report(bare, full_text)
    is_decision = (
        sentence_patterns.DECISION_HEADING.search(lead)
        or sentence_patterns.CHANGE_REPORT.search(lead)
        or DECISION_LABEL.match(bare)
    )
    if kind in _UPGRADABLE_KINDS and is_decision:
        kind = Kind.DECISION
    is_severe = bool(sentence_patterns.SEVERE.search(full_text))
    score = _score_report(text, bare, full_text) + 1.5 * is_how_to
    # The words that a heading says are missing below it.
    if sentence_patterns.CAUSE_LABEL.match(f"{lead}:"):
        score, kind = score + 2.0, Kind.BUG
    return SentenceRating(
        kind, score - 2.0 * (bool(sentence_patterns.LINE_REFERENCE.search(lead)) and not is_severe)
    )


def _classify_report(bare: str, full_text: str) -> Kind:
    """Rules and wishes are the user's to state, advice is no decision."""
    has_cause = discourse_markers.CAUSE.search(bare)
    if sentence_patterns.PENDING_WORK.search(full_text):
        return Kind.TASK
    if sentence_patterns.ROOT_CAUSE.search(full_text) or (
        discourse_markers.FAILURE.search(bare) and (has_cause or discourse_markers.FIX.search(bare))
    ):
        return Kind.BUG
    table = (
        (Kind.LESSON, sentence_patterns.PITFALL),
        (Kind.DECISION, sentence_patterns.CHANGE_REPORT),
        (Kind.BUG, sentence_patterns.FIX_REPORT),
        (Kind.SPEC, sentence_patterns.BEHAVIOUR),
    )
    return next((kind for kind, cue in table if cue.search(bare)), Kind.CONTEXT)


def _score_report(text: str, bare: str, full_text: str) -> float:
    gains = (
        (discourse_markers.CAUSE, 2.0),
        (sentence_patterns.ROOT_CAUSE, 1.0),
        (sentence_patterns.PITFALL, 1.5),
        (sentence_patterns.CHANGE_REPORT, 1.5),
        (sentence_patterns.BEHAVIOUR, 1.0),
        (sentence_patterns.FIX_REPORT, 1.5),
        (discourse_markers.FAILURE, 0.5),
        (sentence_patterns.SEVERE, 1.0),
        (discourse_markers.COMPLETED_CHANGE, 0.5),
        (discourse_markers.FINDING, 0.5),
        (sentence_patterns.PENDING_WORK, 1.0),
        (sentence_patterns.HEDGE, -0.5),
        (sentence_patterns.EXPLORATION, -3.0),
        (sentence_patterns.ADVICE, -2.0),
    )
    score = sum(gain for cue, gain in gains if cue.search(bare))
    score -= 3.0 * bool(sentence_patterns.VERIFICATION_REPORT.search(full_text))
    score -= 1.5 * bool(sentence_patterns.TEST_NAME.search(text))
    against = (discourse_markers.SUGGESTION, discourse_markers.OFFER)
    score -= 2.0 * sum(bool(cue.search(full_text) or cue.search(bare)) for cue in against)
    return score + 0.5 * _count_exact_details(text)


def _count_exact_details(text: str) -> int:
    """Counts the sorts of exact details: files, names, measures, and two measures."""
    measures = len(set(_MEASURE.findall(text)))
    return bool(extract_paths(text)) + bool(_EXACT_NAME.search(text)) + min(measures, 2)


def extract_exact_terms(text: str) -> frozenset[str]:
    """The names, measures, figures and quoted words in a text, as one would look for them."""
    patterns = (_EXACT_NAME, _MEASURE, _FIGURE, _PROPER_NAME)
    terms = (item[0] for pattern in patterns for item in pattern.finditer(text))
    return frozenset(item.strip("`'\"").lower() for item in terms)
