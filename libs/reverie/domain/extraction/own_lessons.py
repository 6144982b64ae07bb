"""Finds what an agent says that it learned about its own work, whatever the project."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reverie.domain.core.kinds import Kind
from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.extraction.rule_extractor import ExtractedMemory
from reverie.domain.text.markdown import split_sentences
from reverie.domain.text.turns import TurnText

MAX_LESSONS = 5
"""Of one session: more would be chatter."""
PRIORITY = 0.5
_MIN_WORDS, _MAX_CHARS = 5, 300
_LEARNED = re.compile(
    r"^\W*(?:lessons? learned\b.*\bi\b|(?:next time|from now on),? i(?:'ll| will| should| must)?\b"
    r"|my mistake\b.*\bi\b|i should(?:'ve| have)\b|i (?:have )?(?:learned|learnt|realized) that i\b"
    r"|i(?:'ll| will) (?:always|never again)\b)|^(?:下次我|以后我|我应该|我学到)",
    re.I,
)
_PROJECT = re.compile(
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
                        text, Kind.LESSON, (), PRIORITY, (), (turn.id,), turn.at
                    )
    return list(lessons.values())[:MAX_LESSONS]


def _is_lesson(sentence: str) -> bool:
    is_long_enough = len(sentence.split()) >= _MIN_WORDS or not sentence.isascii()
    return (
        is_long_enough
        and len(sentence) <= _MAX_CHARS
        and _LEARNED.search(sentence) is not None
        and _PROJECT.search(sentence) is None
        and not extract_paths(sentence)
    )
