"""What a person prefers and what an agent learned, whatever the project: memories of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from reverie.domain.access.scopes import slugify
from reverie.domain.core.kinds import Kind
from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.extraction.rule_extractor import ExtractedMemory
from reverie.domain.text.markdown import split_sentences
from reverie.domain.text.turns import TurnText

MAX_LESSONS = 5
"""Of one session: more would be chatter."""
LESSON_PRIORITY = 0.5
_MIN_WORDS, _MAX_CHARS = 5, 300
_LEARNED = re.compile(
    r"^\W*(?:lessons? learned\b.*\bi\b|(?:next time|from now on),? i(?:'ll| will| should| must)?\b"
    r"|my mistake\b.*\bi\b|i should(?:'ve| have)\b|i (?:have )?(?:learned|learnt|realized) that i\b"
    r"|i(?:'ll| will) (?:always|never again)\b)|^(?:下次我|以后我|我应该|我学到)",
    re.I,
)
_NAMES_PROJECT = re.compile(
    r"`|\b(?:we|us|our|ours)\b"
    r"|\b(?:this|the) (?:project|repo(?:sitory)?|code ?base|service|module)\b"
    r"|我们|(?:这个|本)(?:项目|仓库)",
    re.I,
)


def find_own_lessons(turns: Iterable[TurnText]) -> list[ExtractedMemory]:
    """Lessons in the words of the agent. A sentence that names code or a project is none."""
    lessons: dict[str, ExtractedMemory] = {}
    for turn in turns:
        if turn.role != "assistant":
            continue
        for line in turn.content.splitlines():
            for sentence in split_sentences(line):
                text = " ".join(sentence.split())
                if text.casefold() not in lessons and _is_lesson(text):
                    lessons[text.casefold()] = ExtractedMemory(
                        text, Kind.LESSON, (), LESSON_PRIORITY, (), (turn.id,), turn.at
                    )
    return list(lessons.values())[:MAX_LESSONS]


def _is_lesson(sentence: str) -> bool:
    is_long_enough = len(sentence.split()) >= _MIN_WORDS or not sentence.isascii()
    return (
        is_long_enough
        and len(sentence) <= _MAX_CHARS
        and _LEARNED.search(sentence) is not None
        and _NAMES_PROJECT.search(sentence) is None
        and not extract_paths(sentence)
    )


_PREFERENCE_KINDS = frozenset({Kind.PREFERENCE, Kind.CONVENTION})
_ONESELF = re.compile(r"\b(?:i|i'[dm]|me|my|mine|myself)\b|我(?!们)", re.I)
_TO_ONESELF = re.compile(
    r"\b(?:(?:to|with|for|at|ask|asking|tell|telling) me|my)\b|(?:对|跟|给|问|告诉)我(?!们)", re.I
)
_ABOUT_ANSWERS = re.compile(
    r"\b(?:answers?|responses?|repl(?:y|ies)|explanations?|emojis?|preamble|fluff|apologi[sz]\w*)\b"
    r"|回答|解释|表情",
    re.I,
)
_PROJECT = re.compile(
    r"\b(?:we|we'\w+|us|our|ours|here)\b"
    r"|\b(?:this|the|that) (?:project|repo(?:sitory)?|code ?base|service|package|module|app"
    r"|library|branch|pr|file|class|function|table|schema)\b"
    r"|我们|咱们|(?:这个|本|该)(?:项目|仓库|服务|模块|分支|文件)",
    re.I,
)
_NAME = re.compile(r"[\w-]+")


def is_own_preference(kind: Kind, text: str, files: Sequence[str], project: str | None) -> bool:
    """Whether a text of a user is about the user, in all projects, and not about one of them.

    `files`: those that the text names. `project`: the name or slug of the project that it was said
    in. Rules count only where they say how to treat the user.
    """
    if kind not in _PREFERENCE_KINDS or files or _PROJECT.search(text):
        return False
    if project and project.casefold() in _NAME.findall(text.casefold()):
        return False
    if kind is Kind.CONVENTION:
        return bool(_TO_ONESELF.search(text))
    return bool(_ONESELF.search(text) or _ABOUT_ANSWERS.search(text))


def own_preference_scope(
    kind: Kind, text: str, files: Sequence[str], project: str | None, user: str | None
) -> str | None:
    """The scope of the user if the text is their own preference and the user is known."""
    if user is None or not is_own_preference(kind, text, files, project):
        return None
    return f"user/{slugify(user)}"
