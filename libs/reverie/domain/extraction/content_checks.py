"""Checks of a memory's text: its kind, what would improve it, and what its source supports."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from reverie.domain.core.kinds import Kind
from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.extraction.wording import discourse_markers
from reverie.domain.text.index_terms import index_text

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
    """Returns the kind whose cues weigh most; `context` if there are none."""
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


def _gives_reason(text: str) -> bool:
    return bool(
        discourse_markers.CAUSE.search(text) or re.search(r"\bto (?:avoid|keep|make|allow)\b", text)
    )


def suggest_improvements(content: str, kind: Kind) -> tuple[str, ...]:
    """Suggests changes that make this memory more useful later; never a reason to refuse it."""
    text = content.strip()
    suggestions = []
    if kind is Kind.DECISION and not _gives_reason(text):
        suggestions.append("say why: a decision with its reason can be judged later")
    if kind is Kind.BUG and not (_gives_reason(text) or discourse_markers.FIX.search(text)):
        suggestions.append("say what caused it and what fixed it")
    if discourse_markers.DANGLING_REFERENCE.search(text):
        suggestions.append("name the thing instead of 'it' or 'this': the text must stand alone")
    strong_kinds = _find_strong_kinds(text)
    if strong_kinds and kind not in strong_kinds:
        suggestions.append(f"this reads like a {strong_kinds[0].value}; kind stays {kind.value}")
    if len(text) < 20:
        suggestions.append("a few more words would make this easier to find")
    return tuple(suggestions)


MIN_WORD_SHARE = 0.3
"""Share of a memory's words that must occur in the source; the rest may be rephrased."""

_STEM_LENGTH = 5
_CODE_SPAN = re.compile(r"`([^`\n]{2,})`")
_NUMBER = re.compile(r"\d[\d.,]*\d")
_PROMPT_INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s+(?:(?:all|any|the|your|my|these|previous|prior|above"
    r"|earlier)\s+)*(?:instructions?|rules|prompts?)\b"
    r"|\b(?:your|the) system prompt\b|(?:忽略|无视|忘记).{0,8}(?:指令|指示|提示词)",
    re.I,
)


def contains_instructions(content: str) -> bool:
    """Returns whether a text contains instructions to a language model."""
    return _PROMPT_INJECTION.search(content) is not None


def is_grounded(content: str, source_text: str) -> bool:
    """Returns whether the source contains every name and number of a memory, and enough of its
    words."""
    lower = source_text.lower()
    mentioned = {path.rstrip("/").rpartition("/")[2] or path for path in extract_paths(content)}
    mentioned |= {code.strip() for code in _CODE_SPAN.findall(content)}
    if any(name.lower() not in lower for name in mentioned | set(_NUMBER.findall(content))):
        return False
    return compute_word_overlap(content, source_text) >= MIN_WORD_SHARE


def compute_word_overlap(content: str, source_text: str) -> float:
    """Returns the share of a text's words that occur in another, by their beginnings; 0 to 1."""
    words = _stem_words(content)
    return len(words & _stem_words(source_text)) / len(words) if words else 0.0


def _stem_words(text: str) -> set[str]:
    """Returns the first letters of each word; short words of letters are left out."""
    words = index_text(text).split()
    return {word[:_STEM_LENGTH] for word in words if len(word) > 3 or not word.isascii()}
