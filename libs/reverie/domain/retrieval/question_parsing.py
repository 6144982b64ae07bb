"""Rule-based parsing of a question: language, intent, names, time range, projects, keywords."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reverie.domain.access.scopes import project_of_scope
from reverie.domain.core.kinds import Kind
from reverie.domain.entities.recognition import extract_entities
from reverie.domain.retrieval.exact_name_match import (
    CAMEL_CASE,
    MAX_NAMES,
    normalize_name,
    parse_name_query,
)
from reverie.domain.retrieval.speakers import extract_people
from reverie.domain.text.characters import word_set
from reverie.domain.text.index_terms import find_joined_names, query_text
from reverie.domain.text.memory_fence import strip_fenced
from reverie.domain.text.time_expressions import TimeRange, parse_time_range

MIN_REMAINING_WORDS = 2
_NAME_SEPARATOR = re.compile(r"[_-]+")
_WORD = re.compile(r"\w+")


def extract_project_mentions(text: str, scopes: Iterable[str]) -> tuple[str, frozenset[str]]:
    """Returns the question without the names of projects among the scopes, and these projects.

    Names of one word stay, because they may be words of the question. All names stay if little else
    is left.
    """
    mentioned: dict[str, re.Pattern[str]] = {}
    for project in filter(None, map(project_of_scope, scopes)):
        parts = [re.escape(part) for part in _NAME_SEPARATOR.split(project) if part]
        if len(parts) < MIN_REMAINING_WORDS:
            continue
        # A name of several words is written joined as it is, or apart.
        name = "[ _-]+".join(parts)
        pattern = re.compile(rf"(?<![\w-]){name}(?:['’]s)?(?![\w-])", re.IGNORECASE)
        if pattern.search(text):
            mentioned[project] = pattern
    remaining = text
    for _, pattern in sorted(mentioned.items()):
        remaining = " ".join(pattern.sub(" ", remaining).split())
    has_enough = len(_WORD.findall(remaining)) >= MIN_REMAINING_WORDS
    return remaining if mentioned and has_enough else text, frozenset(mentioned)


class QuestionIntent(StrEnum):
    """The kind of answer that is wanted."""

    WHY = "why"
    WHEN = "when"
    WHO = "who"
    HOW = "how"
    WHICH = "which"
    WHAT = "what"
    GENERAL = "general"


@dataclass(frozen=True)
class ParsedQuestion:
    """A question as parsed by the rules.

    `preferred_kinds`: kinds that usually answer such a question. `names`: its identifiers, or words
    of it in a row, as code names. `projects`: the projects that it names. `only_names`: the names,
    if it contains nothing else. `people`: persons that it may ask about. `entities`: labels of
    services, packages and the like that it names.
    """

    language: str
    intent: QuestionIntent
    identifiers: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    time_range: TimeRange | None = None
    preferred_kinds: frozenset[Kind] = frozenset()
    names: tuple[str, ...] = ()
    projects: frozenset[str] = frozenset()
    only_names: tuple[str, ...] = ()
    people: frozenset[str] = frozenset()
    entities: tuple[str, ...] = ()


# What follows "which date" where it asks for the date: "which date library" asks for a library.
_PHRASE_END = (
    r"(?=\s*(?:$|[?!.,;:)\n]|['’]s\b|(?:did|do|does|is|are|was|were|will|would|can|could|should|shall"
    r"|must|has|have|had|am|a|an|the|i|we|you|they|he|she|it|this|that|these|those|our|my|your|their"
    r"|its|of|for|in|on|at|from|by|to|with)\b))"
)
# Which team "owns" it is a person's answer; which team "settings" is not.
_PERSON_VERB = (
    r"(?=\s+(?:own|maintain|handle|review|approve|decide|write|wrote|built|broke|chose|made|run|ran|use"
    r"|fix|add|introduce|report|propose|want|need)(?:s|d|ed|es)?\b)"
)
_INTENT_PATTERNS: tuple[tuple[QuestionIntent, re.Pattern[str]], ...] = (
    (
        QuestionIntent.WHY,
        re.compile(
            r"\bhow come\b|\b(?:what|which)(?: is| was|'s)? (?:the )?(?:root )?(?:reason|cause)"
            r"|\bwhat (?:caused|led to|made|motivated)\b"
            r"|\b(?:reason|rationale|cause) (?:for|of|behind)\b|\bwhat for\b"
            r"|为什么|为何|为啥|原因|怎么会|何故|なぜ|どうして|왜",
            re.IGNORECASE,
        ),
    ),
    (
        QuestionIntent.WHEN,
        re.compile(
            rf"\b(?:what|which) (?:time|date|day|month|year|week)\b{_PHRASE_END}"
            r"|\bhow (?:long ago|recently)\b|\bsince when\b|什么时候|何时|哪天|哪年|几号|多久"
            r"|几点(?!建议|意见|原因|要求|问题|注意)"
            r"|いつ|언제",
            re.IGNORECASE,
        ),
    ),
    (
        QuestionIntent.WHO,
        re.compile(
            r"\b(?:which|what) (?:person|people|developer|colleague|user|team|agent)\b"
            rf"(?:{_PHRASE_END}|{_PERSON_VERB})"
            r"|谁|哪位|誰|누가|누구",
            re.IGNORECASE,
        ),
    ),
    (QuestionIntent.HOW, re.compile(r"怎么|如何|怎样|どうやって|どのように|어떻게")),
    (QuestionIntent.WHICH, re.compile(r"哪个|哪些|哪一|哪种|どの|どれ|どちら|어느")),
    (QuestionIntent.WHAT, re.compile(r"什么|何が|何を|なに|무엇|뭐")),
)  # fmt: skip
_QUESTION_WORD = re.compile(
    r"\b(why|when|whose|whom|who|how|which|what)(?:['’]s)?\b", re.IGNORECASE
)
# "When the cache is full, what happens?" asks what; "when did", "when was" ask when.
_CONDITION = re.compile(
    r"\s*+when\s++(?!(?:did|do|does|is|are|was|were|will|would|can|could|should|shall|must|has|have"
    r"|had|am)\b)[^?]*?,",
    re.IGNORECASE,
)
_INTENT_BY_WORD: Mapping[str, QuestionIntent] = {
    "whose": QuestionIntent.WHO,
    "whom": QuestionIntent.WHO,
} | {intent.value: intent for intent in QuestionIntent}
_AMOUNT = re.compile(r"\bhow (?:many|much|often|long|big|large|far|old)\b", re.IGNORECASE)

KINDS_BY_INTENT: Mapping[QuestionIntent, frozenset[Kind]] = {
    QuestionIntent.WHY: frozenset({Kind.DECISION, Kind.BUG, Kind.LESSON}),
    QuestionIntent.HOW: frozenset({Kind.SKILL, Kind.CONVENTION, Kind.SPEC}),
    QuestionIntent.WHO: frozenset({Kind.IDENTITY, Kind.PREFERENCE}),
    QuestionIntent.WHEN: frozenset({Kind.SESSION, Kind.HISTORICAL}),
    QuestionIntent.WHICH: frozenset({Kind.DECISION}),
    QuestionIntent.WHAT: frozenset({Kind.SPEC}),
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
_PATH = re.compile(
    # Behind a sign after a slash, a path begins only if nothing of one is before: each beginning
    # would read the rest of a long path again.
    r"(?:(?<![\w/.@~-])|(?<=^/[.@~-])|(?<=[^\w.@~-]/[.@~-]))(?:[\w.@~-]++/)+[\w.@-]+"
    r"|(?<![\w/-])[\w-]++\.[a-zA-Z]{1,4}\b(?!\()"
)
_IDENTIFIER = re.compile(
    rf"\b(?:{CAMEL_CASE}"
    r"|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+|[A-Z][A-Z0-9]{3,}"
    # Behind a dot, a call begins only if no name is before it, as above.
    r"|(?<!\w\.)\w++(?>(?:\.\w++)*)\(\))"
)
_LANGUAGES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")),
)
MAX_PARSED_CHARS = 2_000
"""A longer question is a pasted text: its request is at the beginning."""


def parse_question(
    text: str, now: datetime, projects: frozenset[str] = frozenset()
) -> ParsedQuestion:
    """Parses a question that mentions `projects`; times are relative to `now`."""
    head = text[:MAX_PARSED_CHARS]
    paths = _find_all(_PATH, head)
    identifiers = tuple(name for name in _find_all(_IDENTIFIER, head) if name not in paths)
    code_names = (
        normalize_name(name)
        for name in identifiers
        if "_" in name or (name.isalnum() and not name.isupper())
    )
    quoted = ("".join(filter(None, match.groups())) for match in _QUOTED.finditer(head))
    phrases = tuple(dict.fromkeys(" ".join(phrase.split()) for phrase in quoted))
    mentioned_kinds = frozenset(kind for kind, pattern in _KIND_CUES if pattern.search(head))
    intent = detect_intent(head)
    return ParsedQuestion(
        language=next((name for name, pattern in _LANGUAGES if pattern.search(head)), "en"),
        intent=intent,
        identifiers=identifiers,
        paths=paths,
        phrases=phrases[:MAX_NAMES],
        time_range=parse_time_range(head, now),
        preferred_kinds=mentioned_kinds or KINDS_BY_INTENT.get(intent, frozenset()),
        names=tuple(dict.fromkeys([*code_names, *find_joined_names(head)])),
        projects=projects,
        only_names=parse_name_query(head),
        people=extract_people(head),
        entities=tuple(entity.label for entity in extract_entities(head))[:MAX_NAMES],
    )


def detect_intent(text: str) -> QuestionIntent:
    """Returns the intent of its question word, or of a phrase in place of one."""
    condition = _CONDITION.match(text)
    if condition and _QUESTION_WORD.search(text, condition.end()):
        text = text[condition.end() :]
    first = _QUESTION_WORD.search(text)
    for intent, pattern in _INTENT_PATTERNS:
        match = pattern.search(text)
        if match and (first is None or match.start() <= first.start()):
            return intent
    if first is None:
        return QuestionIntent.GENERAL
    word_intent = _INTENT_BY_WORD[first[1].lower()]
    if word_intent is QuestionIntent.HOW and _AMOUNT.match(text, first.start()):
        return QuestionIntent.WHAT
    return word_intent


def _find_all(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    matches = dict.fromkeys(match[0] for match in pattern.finditer(text))
    return tuple(matches)[:MAX_NAMES]


MAX_QUERY_CHARS = 2_000
"""Of a longer message only the beginning and the end are used: the middle is mostly pasted text."""
MAX_KEYWORDS = 24

_STOP_WORDS = word_set(
    """
    a about after all also am an and any are as at be because been before but by can could did
    do does doing done for from get give go had has have he hello help her here hi how i if in
    into is it its just know let like make may me might more my need new next no not now of ok
    on or our out over please say see she should show so some sure tell than thank thanks that
    the their them then there these they this those to too try up us use want was we were what
    when where which who why will with would yes you your
    """
)


def extract_query(message: str) -> str:
    """The question of a message, without recalled memory and without the middle of a long one."""
    query = strip_fenced(message).strip()
    if len(query) <= MAX_QUERY_CHARS:
        return query
    half = MAX_QUERY_CHARS // 2
    return f"{query[:half]}\n{query[-half:]}"


def list_distinctive_words(text: str) -> list[str]:
    """The words of a question as they are indexed, each once, without those of every question."""
    words = dict.fromkeys(query_text(text).split())
    return [w for w in words if w not in _STOP_WORDS and len(w) > (2 if w.isascii() else 1)]


def extract_keywords(text: str, question: ParsedQuestion) -> list[str]:
    """Paths, identifiers and phrases as written, then distinctive words; at most 24."""
    exact_terms = [*question.paths, *question.identifiers, *question.phrases]
    exact_words = set(query_text(" ".join(exact_terms)).split())
    words = (word for word in list_distinctive_words(text) if word not in exact_words)
    return list(dict.fromkeys([*exact_terms, *words]))[:MAX_KEYWORDS]
