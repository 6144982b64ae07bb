"""Extraction of code identifiers from a text, by shapes that ordinary words do not have."""

from __future__ import annotations

import re

MAX_IDENTIFIERS = 200
MIN_IDENTIFIER_LENGTH = 3

_NAME = r"[A-Za-z_$][\w$]*"
_CODE_SPAN = re.compile(r"`([^`\n]{1,200})`")
_IDENTIFIER = re.compile(
    rf"(?<![\w$./-])(?:"
    rf"(?P<call>{_NAME})(?=\()"
    rf"|(?P<member>{_NAME}(?:(?:\.|::|->|\#){_NAME})+)"
    rf"|(?P<humps>[A-Za-z][a-z0-9]*[a-z0-9][A-Z][\w$]*|[A-Z]{{2,}}[a-z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)"
    rf"|(?P<under>[A-Za-z]\w*_\w+|_\w+_\w+)"
    rf")(?![\w$/])"
)
_SINGLE_NAME = re.compile(_NAME)
# Only from the first character of a word: starting anywhere would take quadratic time.
_FILE_PATH = re.compile(r"(?<![\w./-])[\w./-]*\w\.[a-z]{1,5}\b|(?<![\w.-])[\w.-]+/[\w./-]+")


def extract_identifiers(text: str) -> frozenset[str]:
    """The plain names in a text, at most `MAX_IDENTIFIERS`; both names of `Store.load()`."""
    text_without_paths = _FILE_PATH.sub(" ", text)
    names: dict[str, None] = {}
    for code_span in _CODE_SPAN.findall(text_without_paths):
        if len(words := _SINGLE_NAME.findall(code_span)) <= 3:
            names |= dict.fromkeys(words)
    for match in _IDENTIFIER.finditer(text_without_paths):
        names |= dict.fromkeys(_SINGLE_NAME.findall(match[0]))
    return frozenset(
        [name for name in names if len(name) >= MIN_IDENTIFIER_LENGTH][:MAX_IDENTIFIERS]
    )
