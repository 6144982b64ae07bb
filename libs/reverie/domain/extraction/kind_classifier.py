"""Classification of a text into a memory kind by its words, and hints that would improve it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction import discourse_markers

# A strong cue names the kind outright; the words in `cues` only lean towards it.
_PatternTable: TypeAlias = tuple[tuple[Kind, re.Pattern[str]], ...]
_STRONG_PATTERNS: _PatternTable = (
    (Kind.IDENTITY, discourse_markers.IDENTITY),
    (Kind.PREFERENCE, re.compile(r"\bi (?:really )?prefer\b|\bmy preference\b|偏好|我喜欢", re.I)),
    (
        Kind.LESSON,
        re.compile(r"\b(?:lessons? learned|gotcha|pitfall|beware|watch out)\b|教训|踩坑", re.I),
    ),
    (
        Kind.DECISION,
        re.compile(
            r"\bdecided\b|\bdecision:|\bwe chose\b|^use \S+ (?:instead of|rather than|not)\b"
            r"|决定|^(?:采用|改用|选用)",
            re.I,
        ),
    ),
    (
        Kind.BUG,
        re.compile(
            r"\broot cause\b|\bbug(?:fix)?\b|^fix(?:ed)?\b|\bcrash|\bregression\b|根因|缺陷", re.I
        ),
    ),
    (
        Kind.CONVENTION,
        re.compile(
            r"^(?:always|never|do not|don'?t)\b|\bconvention\b|约定|规范|务必|一律|禁止", re.I
        ),
    ),
    (Kind.TASK, re.compile(r"^(?:todo|task|next)\b|\btodo:|待办", re.I)),
    (Kind.SKILL, re.compile(r"^(?:how to|steps? to|to (?:run|build|deploy|release)\b)", re.I)),
    (Kind.REFERENCE, discourse_markers.REFERENCE),
)
_WEAK_PATTERNS: _PatternTable = (
    (Kind.PREFERENCE, discourse_markers.PREFERENCE),
    (Kind.DECISION, discourse_markers.DECISION),
    (Kind.BUG, discourse_markers.FAILURE),
    (Kind.BUG, discourse_markers.FIX),
    (Kind.CONVENTION, discourse_markers.CONVENTION),
    (Kind.LESSON, discourse_markers.LESSON),
    (Kind.TASK, discourse_markers.TASK),
    (Kind.SKILL, discourse_markers.SKILL),
    (Kind.SPEC, discourse_markers.SPEC),
)
_STRONG_WEIGHT = 3


def _compile_lowercase(table: _PatternTable) -> _PatternTable:
    """The same for texts in small letters, which takes little more than half of the time."""
    return tuple(
        (kind, re.compile(pattern.pattern, pattern.flags & ~re.I)) for kind, pattern in table
    )


_STRONG_LOWERCASE, _WEAK_LOWERCASE = (
    _compile_lowercase(_STRONG_PATTERNS),
    _compile_lowercase(_WEAK_PATTERNS),
)


def classify_kind(content: str) -> Kind:
    """The kind whose cues weigh most; `context` where there are none."""
    scores = dict.fromkeys(_find_strong_kinds(content), _STRONG_WEIGHT)
    for kind in _matching_kinds(_WEAK_LOWERCASE, content):
        scores[kind] = scores.get(kind, 0) + 1
    # max keeps the first of equals: the order of the tables is the order of precedence.
    return max(scores, key=lambda kind: scores[kind]) if scores else Kind.CONTEXT


def _matching_kinds(table: _PatternTable, content: str) -> list[Kind]:
    lowered = content.lower()
    return [kind for kind, pattern in table if pattern.search(lowered)]


@lru_cache(4)
def _find_strong_kinds(content: str) -> tuple[Kind, ...]:
    """The kinds that strong cues name: asked for the kind of a text, then for hints on it."""
    return tuple(_matching_kinds(_STRONG_LOWERCASE, content))


def _find_conflicting_kind(content: str, kind: Kind) -> Kind | None:
    """The first kind that a strong cue names, where none names the kind that it has."""
    strong_kinds = _find_strong_kinds(content)
    return None if kind in strong_kinds else next(iter(strong_kinds), None)


def _gives_reason(text: str) -> bool:
    return bool(
        discourse_markers.CAUSE.search(text) or re.search(r"\bto (?:avoid|keep|make|allow)\b", text)
    )


def suggest_improvements(content: str, kind: Kind) -> tuple[str, ...]:
    """What would make this memory more useful later; never a reason to refuse it."""
    text = content.strip()
    suggestions = []
    if kind is Kind.DECISION and not _gives_reason(text):
        suggestions.append("say why: a decision with its reason can be judged later")
    if kind is Kind.BUG and not (_gives_reason(text) or discourse_markers.FIX.search(text)):
        suggestions.append("say what caused it and what fixed it")
    if discourse_markers.DANGLING_REFERENCE.search(text):
        suggestions.append("name the thing instead of 'it' or 'this': the text must stand alone")
    conflicting_kind = _find_conflicting_kind(text, kind)
    if conflicting_kind:
        suggestions.append(f"this reads like a {conflicting_kind.value}; kind stays {kind.value}")
    if len(text) < 20:
        suggestions.append("a few more words would make this easier to find")
    return tuple(suggestions)
