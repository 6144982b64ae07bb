"""The kind of a text that came without one, by the words it uses; and what would improve it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from reverie.domain import cues
from reverie.domain.kinds import Kind

# A strong cue names the kind outright; the words in `cues` only lean towards it.
_Table: TypeAlias = tuple[tuple[Kind, re.Pattern[str]], ...]
_STRONG: _Table = (
    (Kind.IDENTITY, cues.IDENTITY),
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
    (Kind.REFERENCE, cues.REFERENCE),
)
_WEAK: _Table = (
    (Kind.PREFERENCE, cues.PREFERENCE),
    (Kind.DECISION, cues.DECISION),
    (Kind.BUG, cues.FAILURE),
    (Kind.BUG, cues.FIX),
    (Kind.CONVENTION, cues.CONVENTION),
    (Kind.LESSON, cues.LESSON),
    (Kind.TASK, cues.TASK),
    (Kind.SKILL, cues.SKILL),
    (Kind.SPEC, cues.SPEC),
)
_STRONG_WEIGHT = 3


def _lowered(table: _Table) -> _Table:
    """The same for texts in small letters, which takes little more than half of the time."""
    return tuple((kind, re.compile(one.pattern, one.flags & ~re.I)) for kind, one in table)


_STRONG_LOWERED, _WEAK_LOWERED = _lowered(_STRONG), _lowered(_WEAK)


def classify(content: str) -> Kind:
    """The kind whose cues weigh most; `context` where there are none."""
    scores = dict.fromkeys(_named(content), _STRONG_WEIGHT)
    for kind in _found(_WEAK_LOWERED, content):
        scores[kind] = scores.get(kind, 0) + 1
    # max keeps the first of equals: the order of the tables is the order of precedence.
    return max(scores, key=lambda kind: scores[kind]) if scores else Kind.CONTEXT


def _found(table: _Table, content: str) -> list[Kind]:
    lowered = content.lower()
    return [kind for kind, pattern in table if pattern.search(lowered)]


@lru_cache(4)
def _named(content: str) -> tuple[Kind, ...]:
    """The kinds that strong cues name: asked for the kind of a text, then for hints on it."""
    return tuple(_found(_STRONG_LOWERED, content))


def _reads_like(content: str, kind: Kind) -> Kind | None:
    """The first kind that a strong cue names, where none names the kind that it has."""
    named = _named(content)
    return None if kind in named else next(iter(named), None)


def _gives_reason(text: str) -> bool:
    return bool(cues.CAUSE.search(text) or re.search(r"\bto (?:avoid|keep|make|allow)\b", text))


def hints(content: str, kind: Kind) -> tuple[str, ...]:
    """What would make this memory more useful later; never a reason to refuse it."""
    text = content.strip()
    found = []
    if kind is Kind.DECISION and not _gives_reason(text):
        found.append("say why: a decision with its reason can be judged later")
    if kind is Kind.BUG and not (_gives_reason(text) or cues.FIX.search(text)):
        found.append("say what caused it and what fixed it")
    if cues.LEANING.search(text):
        found.append("name the thing instead of 'it' or 'this': the text must stand alone")
    other = _reads_like(text, kind)
    if other:
        found.append(f"this reads like a {other.value}; kind stays {kind.value}")
    if len(text) < 20:
        found.append("a few more words would make this easier to find")
    return tuple(found)
