"""What a question asks for: language, names, phrases, a time, an intent. By rule, pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reverie.domain.kinds import Kind
from reverie.domain.named import HUMPED, MAX_NAMES, named_alone, plain
from reverie.domain.periods import Period, period_of
from reverie.domain.speakers import people
from reverie.domain.words import spelled_names


class Intent(StrEnum):
    """What kind of answer is wanted."""

    WHY = "why"
    WHEN = "when"
    WHO = "who"
    HOW = "how"
    WHICH = "which"
    WHAT = "what"
    GENERAL = "general"


@dataclass(frozen=True)
class Reading:
    """A question as the rules read it. `wants`: kinds that usually answer such a question.

    `names`: what its identifiers, or words of it in a row, are as a name in code. `places`: the
    projects that it names. `alone`: the names, where it asks by nothing else. `people`: whom it may
    ask about.
    """

    language: str
    intent: Intent
    identifiers: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    period: Period | None = None
    wants: frozenset[Kind] = frozenset()
    names: tuple[str, ...] = ()
    places: frozenset[str] = frozenset()
    alone: tuple[str, ...] = ()
    people: frozenset[str] = frozenset()


_SPECIFIC: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    (
        Intent.WHY,
        re.compile(
            r"\bhow come\b|\b(?:what|which)(?: is| was|'s)? (?:the )?(?:root )?(?:reason|cause)"
            r"|\bwhat (?:caused|led to|made|motivated)\b"
            r"|\b(?:reason|rationale|cause) (?:for|of|behind)\b|\bwhat for\b"
            r"|为什么|为何|为啥|原因|怎么会|何故|なぜ|どうして|왜",
            re.IGNORECASE,
        ),
    ),
    (
        Intent.WHEN,
        re.compile(
            r"\b(?:what|which|on what|at what) (?:time|date|day|month|year|week)\b"
            r"|\bhow (?:long ago|recently)\b|\bsince when\b|什么时候|何时|哪天|哪年|几号|几点|多久"
            r"|いつ|언제",
            re.IGNORECASE,
        ),
    ),
    (
        Intent.WHO,
        re.compile(
            r"\b(?:which|what) (?:person|people|developer|colleague|user|team|agent)\b"
            r"|谁|哪位|誰|누가|누구",
            re.IGNORECASE,
        ),
    ),
    (Intent.HOW, re.compile(r"怎么|如何|怎样|どうやって|どのように|어떻게")),
    (Intent.WHICH, re.compile(r"哪个|哪些|哪一|哪种|どの|どれ|どちら|어느")),
    (Intent.WHAT, re.compile(r"什么|何が|何を|なに|무엇|뭐")),
)  # fmt: skip
_FIRST = re.compile(r"\b(why|when|whose|whom|who|how|which|what)(?:['’]s)?\b", re.IGNORECASE)
_OF_WORD: Mapping[str, Intent] = {"whose": Intent.WHO, "whom": Intent.WHO} | {
    intent.value: intent for intent in Intent
}
_AMOUNT = re.compile(r"\bhow (?:many|much|often|long|big|large|far|old)\b", re.IGNORECASE)

WANTED: Mapping[Intent, frozenset[Kind]] = {
    Intent.WHY: frozenset({Kind.DECISION, Kind.BUG, Kind.LESSON}),
    Intent.HOW: frozenset({Kind.SKILL, Kind.CONVENTION, Kind.SPEC}),
    Intent.WHO: frozenset({Kind.IDENTITY, Kind.PREFERENCE}),
    Intent.WHEN: frozenset({Kind.SESSION, Kind.HISTORICAL}),
    Intent.WHICH: frozenset({Kind.DECISION}),
}
_KIND_CUES: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (Kind.DECISION, r"\bdeci(?:de|ded|sion)s?\b|\bch(?:ose|oose|osen)\b|决定|选择|选用"),
        (Kind.CONVENTION, r"\bconventions?\b|\brules?\b|\bstyle\b|\bguidelines?\b|约定|规范"),
        (Kind.BUG, r"\bbugs?\b|\bcrash\w*|\bfail(?:s|ed|ure)?\b|\bfix(?:ed)?\b|缺陷|故障|报错"),
        (Kind.PREFERENCE, r"\bprefer(?:s|red|ence|ences)?\b|\bfavou?rite\b|偏好|喜欢"),
        (Kind.TASK, r"\btodos?\b|\btasks?\b|\bnext steps?\b|\bopen items?\b|待办|任务"),
        (Kind.SPEC, r"\bspec(?:s|ification)?\b|\brequirements?\b|\bcontract\b|规格|需求"),
        (Kind.LESSON, r"\blessons?\b|\bgotchas?\b|\bpitfalls?\b|教训|踩坑"),
        (Kind.SKILL, r"\bsteps?\b|\bprocedure\b|\brunbook\b|步骤|流程"),
    )
)

_QUOTED = re.compile(
    r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|「([^」\n]{1,200})」|`([^`\n]{2,200})`"
)
_PATH = re.compile(r"(?<![\w/])(?:[\w.@~-]+/)+[\w.@-]+|(?<![\w/])[\w-]+\.[a-zA-Z]{1,4}\b(?!\()")
_IDENTIFIER = re.compile(
    rf"\b(?:{HUMPED}"
    r"|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+|[A-Z][A-Z0-9]{3,}|[\w.]+\(\))"
)
_LANGUAGES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")),
)
READ_CHARS = 2_000
"""A longer question is a pasted text: what it asks for stands at its beginning."""


def read(text: str, now: datetime, places: frozenset[str] = frozenset()) -> Reading:
    """What `text`, which may name `places`, asks for; times are reckoned from `now`."""
    head = text[:READ_CHARS]
    paths = _names(_PATH, head)
    identifiers = tuple(n for n in _names(_IDENTIFIER, head) if n not in paths)
    intent = intent_of(head)
    return Reading(
        language=_language(head),
        intent=intent,
        identifiers=identifiers,
        paths=paths,
        phrases=tuple(_phrases(head)),
        period=period_of(head, now),
        wants=_wants(head, intent),
        names=_as_names(identifiers, head),
        places=places,
        alone=named_alone(head),
        people=people(head),
    )


def intent_of(text: str) -> Intent:
    """The intent that its question word, or a phrase that stands for one, names."""
    first = _FIRST.search(text)
    for intent, pattern in _SPECIFIC:
        found = pattern.search(text)
        if found and (first is None or found.start() <= first.start()):
            return intent
    if first is None:
        return Intent.GENERAL
    word = _OF_WORD[first[1].lower()]
    if word is Intent.HOW and _AMOUNT.match(text, first.start()):
        return Intent.WHAT
    return word


def _wants(text: str, intent: Intent) -> frozenset[Kind]:
    named = frozenset(kind for kind, pattern in _KIND_CUES if pattern.search(text))
    return named or WANTED.get(intent, frozenset())


def _language(text: str) -> str:
    return next((name for name, pattern in _LANGUAGES if pattern.search(text)), "en")


def _names(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    found = dict.fromkeys(match[0] for match in pattern.finditer(text))
    return tuple(found)[:MAX_NAMES]


def _as_names(identifiers: Sequence[str], text: str) -> tuple[str, ...]:
    as_text = (plain(one) for one in identifiers if _of_words(one))
    return tuple(dict.fromkeys([*as_text, *spelled_names(text)]))


def _of_words(identifier: str) -> bool:
    return "_" in identifier or (identifier.isalnum() and not identifier.isupper())


def _phrases(text: str) -> list[str]:
    found = ("".join(filter(None, match.groups())) for match in _QUOTED.finditer(text))
    return list(dict.fromkeys(" ".join(one.split()) for one in found))[:MAX_NAMES]
