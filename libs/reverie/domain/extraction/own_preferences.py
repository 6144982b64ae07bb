"""Tells what a person says of their own way of working from what they say of a project."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.domain.access.scopes import slugify
from reverie.domain.core.kinds import Kind

_KINDS = frozenset({Kind.PREFERENCE, Kind.CONVENTION})
_ONESELF = re.compile(r"\b(?:i|i'[dm]|me|my|mine|myself)\b|我(?!们)", re.I)
_TO_ONESELF = re.compile(r"\b(?:(?:to|with|for|at) me|my)\b|(?:对|跟|给)我(?!们)", re.I)
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
    if kind not in _KINDS or files or _PROJECT.search(text):
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
