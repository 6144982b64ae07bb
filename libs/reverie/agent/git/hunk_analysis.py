"""Classifies the lines of a hunk: code or comment, defined symbols, identifiers.

Only the changed lines are known, so each line is analysed by itself. In doubt it counts as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import PurePosixPath
from typing import Final, Literal

HunkKind = Literal["code", "comment", "space"]

MAX_LINES: Final = 2000
"""Limit per hunk. Longer hunks count as code and only their first lines are analysed."""

_HASH_COMMENT_EXTENSIONS: Final = (
    "py pyi rb rake sh bash zsh yaml yml toml mk cmake pl pm r jl ex exs nix tf conf"
)
_SLASH_COMMENT_EXTENSIONS: Final = (
    "c h cc cpp cxx hh hpp hxx cs go java js jsx mjs cjs ts tsx kt kts rs swift scala dart php "
    "proto groovy m mm less scss css zig sol"
)
_MARKUP_EXTENSIONS: Final = "html htm xml md markdown svg vue"
_SEMICOLON_COMMENT_EXTENSIONS: Final = "lisp el clj cljs scm ini asm"
_DASH_COMMENT_EXTENSIONS: Final = "sql lua hs elm ada adb ads"
_COMMENT_PATTERNS: Final[dict[str, str]] = {
    **dict.fromkeys(_HASH_COMMENT_EXTENSIONS.split(), r"\#.*"),
    **dict.fromkeys(_SLASH_COMMENT_EXTENSIONS.split(), r"//.*|/\*.*?(?:\*/|$)|^\s*\*(?=[\s/]|$).*"),
    **dict.fromkeys(_DASH_COMMENT_EXTENSIONS.split(), r"--.*"),
    **dict.fromkeys(_MARKUP_EXTENSIONS.split(), r"<!--.*?(?:-->|$)"),
    **dict.fromkeys(_SEMICOLON_COMMENT_EXTENSIONS.split(), r";.*"),
    "php": r"//.*|\#.*|/\*.*?(?:\*/|$)|^\s*\*(?=[\s/]|$).*",
    "css": r"/\*.*?(?:\*/|$)|^\s*\*(?=[\s/]|$).*",
}
_EXTENSION_BY_FILE_NAME: Final = {
    "makefile": "mk",
    "dockerfile": "conf",
    "gemfile": "rb",
    "rakefile": "rb",
}
_PROSE_EXTENSIONS: Final = {"md", "markdown", "txt", "rst", "adoc", ""}
_INDENTED_EXTENSIONS: Final = {
    "py",
    "pyi",
    "yaml",
    "yml",
    "mk",
    "hs",
    "elm",
    "nim",
    "sass",
    "pug",
    "coffee",
}
_DOUBLE_QUOTED: Final = r"\"(?>(?:\\(?s:.)|[^\"\\])*)(?:\"|\\?$)"
_STRING: Final = (
    _DOUBLE_QUOTED + r"|'(?>(?:\\(?s:.)|[^'\\])*)(?:'|\\?$)|`(?>(?:\\(?s:.)|[^`\\])*)(?:`|\\?$)"
)
_APOSTROPHE_EXTENSIONS: Final = {"rs", "lisp", "el", "clj", "cljs", "scm", "hs", "elm"}
"""Languages in which a quote may occur alone: only double quotes make a string."""

_DEFINITION_PATTERNS: Final = (
    re.compile(
        r"^\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|"
        r"pub(?:\([^)]*\))?|unsafe|extern|override|open|sealed|data|inline|const|declare|virtual)\s+)*"
        r"(?:def|class|func|function\*?|fn|fun|interface|struct|enum|trait|impl|type|module|"
        r"namespace|record|object|protocol|macro_rules!|sub|defmodule|defp?)\s+"
        r"(?:\([^)]*\)\s*)?(?:self\.)?([A-Za-z_$][\w$]*)"
    ),
    re.compile(r"^\s*(?:export\s+)?(?:const|let|var|val)\s+([A-Za-z_$][\w$]*)\s*=\s*(?:async\s*)?"
               r"(?:function\b|\([^)]*\)\s*(?::[^=]+)?=>|[\w$]+\s*=>)"),
    re.compile(r"^([A-Z][A-Z0-9_]{2,})\s*(?::[^=]+)?=(?!=)"),
    re.compile(r"^\s*create\s+(?:or\s+replace\s+)?(?:unique\s+)?(?:table|function|view|index|type|"
               r"procedure|trigger)\s+(?:if\s+not\s+exists\s+)?([A-Za-z_][\w.]*)", re.IGNORECASE),
    re.compile(r"^#{1,6}\s++((?:[^\s#]++|#++(?!$)|\s++(?!#*+$))+)"),
)  # fmt: skip
_C_FUNCTION: Final = re.compile(r"(?:^|[\s*&:~])([A-Za-z_]\w*)\s*\([^;]*$")
_HEADING: Final = _DEFINITION_PATTERNS[-1]
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]{2,79}")
_KEYWORDS: Final = """
    and any are args assert async await bool boolean break case catch char class const continue
    def default del delete elif else enum except export extends false final finally float for from
    func function global goto implements import int interface lambda let list long map match new
    nil none not null object package pass private protected public raise return self set short
    static str string struct super switch the this throw throws true try type typeof undefined
    union unsigned use using var void while with yield None True False
    """
_KEYWORD_SET: Final = frozenset(_KEYWORDS.split())


def source_extension(path: str) -> str:
    """The ending of a path, in lower case, by which its comments are known."""
    name = PurePosixPath(path)
    return _EXTENSION_BY_FILE_NAME.get(name.name.lower(), name.suffix.lower().removeprefix("."))


def classify_hunk(path: str, removed: Sequence[str], added: Sequence[str]) -> HunkKind:
    """Classifies the change of a hunk: `space` only, `comment`s (and space), or code."""
    if len(removed) + len(added) > MAX_LINES:
        return "code"
    extension = source_extension(path)
    if _normalize_space(removed, extension) == _normalize_space(added, extension):
        return "space"
    if extension in _PROSE_EXTENSIONS or extension not in _COMMENT_PATTERNS:
        return "code"
    old, new = ([_strip_comments(line, extension) for line in side] for side in (removed, added))
    return (
        "comment"
        if _normalize_space(old, extension) == _normalize_space(new, extension)
        else "code"
    )


def find_symbols(path: str, lines: Sequence[str]) -> list[str]:
    """The names that the lines define, in their order, each once."""
    headings = source_extension(path) in {"md", "markdown"}
    candidates = (_defined_name(line, headings) for line in lines[:MAX_LINES])
    return list(dict.fromkeys(name for name in candidates if name))


def find_header_symbol(path: str, header: str) -> str | None:
    """Returns the definition that a hunk's header names."""
    symbol = _defined_name(header, source_extension(path) in {"md", "markdown"})
    if symbol or not header:
        return symbol
    match = _C_FUNCTION.search(header)
    return match[1] if match and match[1] not in _KEYWORD_SET else None


def find_identifiers(path: str, removed: Sequence[str], added: Sequence[str]) -> list[str]:
    """Finds identifiers of code in the lines, those on one side only first.

    Text of strings is left out, because it may contain a secret, and so are comments.
    """
    extension = source_extension(path)
    if extension in _PROSE_EXTENSIONS or extension not in _COMMENT_PATTERNS:
        return []
    old, new = (
        dict.fromkeys(_iter_identifiers(side[:MAX_LINES], extension)) for side in (removed, added)
    )
    one_sided = [word for word in (*old, *new) if (word in old) != (word in new)]
    return list(dict.fromkeys([*one_sided, *old]))


def _defined_name(line: str, headings: bool) -> str | None:
    for pattern in _DEFINITION_PATTERNS:
        if (pattern is _HEADING) != headings:
            continue
        match = pattern.match(line)
        if match:
            return match[1][:200]
    return None


def _iter_identifiers(lines: Sequence[str], extension: str) -> Iterator[str]:
    for line in lines:
        for word in _IDENTIFIER.findall(_strip_comments(line, extension, include_strings=False)):
            if word not in _KEYWORD_SET:
                yield word


def _strip_comments(line: str, extension: str, include_strings: bool = True) -> str:
    """Removes comments from the line, and optionally strings."""
    return _comment_pattern(extension).sub(
        lambda match: match[0] if include_strings and match["string"] is not None else " ", line
    )


@cache
def _comment_pattern(extension: str) -> re.Pattern[str]:
    string = _DOUBLE_QUOTED if extension in _APOSTROPHE_EXTENSIONS else _STRING
    return re.compile(f"(?P<string>{string})|{_COMMENT_PATTERNS[extension]}")


def _normalize_space(lines: Sequence[str], extension: str) -> list[str]:
    """Returns the lines that are not blank, with each run of blanks as one.

    Lines are joined if neither line ends nor blanks matter. Indentation stays if it is code.
    """
    non_blank = [line.rstrip() for line in lines if line.strip()]
    if extension in _INDENTED_EXTENSIONS:
        return [
            line[: len(line) - len(line.lstrip())] + _collapse_space(line) for line in non_blank
        ]
    if extension in _PROSE_EXTENSIONS:
        return " ".join(non_blank).split()
    joined = "\n".join(_collapse_space(line) for line in non_blank)
    return [re.sub(r"(?<!\w)\n|\n(?!\w)", "", joined)]


def _collapse_space(line: str) -> str:
    """The line without blanks but those between two words and those inside strings."""
    pieces = re.split(f"({_STRING})", line)
    return "".join(
        piece if index % 2 else re.sub(r"(?<!\w)\s+|\s+(?!\w)", "", piece).replace("\t", " ")
        for index, piece in enumerate(pieces)
    )
