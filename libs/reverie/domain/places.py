"""The names of the projects that a question is asked in: they tell where to look, not for what.

A memory that lies in a project is about it without saying so. So a question that names the project
is nearest to the few memories that do say it, whatever else is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from reverie.domain.scopes import project_of

LEAST_WORDS = 2
_PART = re.compile(r"[_-]+")
_WORD = re.compile(r"\w+")


def about(text: str, scopes: Iterable[str]) -> tuple[str, frozenset[str]]:
    """The question less the names of projects among the scopes, and the projects that it named.

    Names of one word stay, for they may be words of the question; and all do where little else is
    left.
    """
    projects = {project for scope in scopes if (project := project_of(scope))}
    named = {one: found for one in projects if (found := _name(one)) and found.search(text)}
    less = text
    for _, found in sorted(named.items()):
        less = " ".join(found.sub(" ", less).split())
    enough = len(_WORD.findall(less)) >= LEAST_WORDS
    return less if named and enough else text, frozenset(named)


def _name(project: str) -> re.Pattern[str] | None:
    """How a name of several words is written: joined as it is, or apart."""
    parts = [re.escape(part) for part in _PART.split(project) if part]
    if len(parts) < LEAST_WORDS:
        return None
    return re.compile(rf"(?<![\w-]){'[ _-]+'.join(parts)}(?:['’]s)?(?![\w-])", re.IGNORECASE)
