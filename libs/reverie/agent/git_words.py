"""What the lines of a hunk amount to: code or not, which definitions, which identifiers.

Only the changed lines are at hand, so a line is read by itself: the middle of a comment that began
above is known where its form tells it. What is in doubt counts as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final, Literal

Kind = Literal["code", "comment", "space"]

MOST_LINES: Final = 2000
"""Of one hunk; what is longer is code, and its first lines tell its words."""

_HASH: Final = "py pyi rb rake sh bash zsh yaml yml toml mk cmake pl pm r jl ex exs nix tf conf"
_SLASH: Final = (
    "c h cc cpp cxx hh hpp hxx cs go java js jsx mjs cjs ts tsx kt kts rs swift scala dart php "
    "proto groovy m mm less scss css zig sol"
)
_MARKUP: Final = "html htm xml md markdown svg vue"
_LISP: Final = "lisp el clj cljs scm ini asm"
_DASH: Final = "sql lua hs elm ada adb ads"
_COMMENTS: Final[dict[str, str]] = {
    **dict.fromkeys(_HASH.split(), r"\#.*"),
    **dict.fromkeys(_SLASH.split(), r"//.*|/\*.*?(?:\*/|$)|^\s*\*(?=[\s/]|$).*"),
    **dict.fromkeys(_DASH.split(), r"--.*"),
    **dict.fromkeys(_MARKUP.split(), r"<!--.*?(?:-->|$)"),
    **dict.fromkeys(_LISP.split(), r";.*"),
    "php": r"//.*|\#.*|/\*.*?(?:\*/|$)|^\s*\*(?=[\s/]|$).*",
    "css": r"/\*.*?(?:\*/|$)|^\s*\*(?=[\s/]|$).*",
}
_NAMED: Final = {"makefile": "mk", "dockerfile": "conf", "gemfile": "rb", "rakefile": "rb"}
_PROSE: Final = {"md", "markdown", "txt", "rst", "adoc", ""}
_INDENTED: Final = {"py", "pyi", "yaml", "yml", "mk", "hs", "elm", "nim", "sass", "pug", "coffee"}
_DOUBLE: Final = r"\"(?:\\.|[^\"\\])*(?:\"|$)"
_STRING: Final = _DOUBLE + r"|'(?:\\.|[^'\\])*(?:'|$)|`(?:\\.|[^`\\])*(?:`|$)"
_APOSTROPHES: Final = {"rs", "lisp", "el", "clj", "cljs", "scm", "hs", "elm"}
"""Where a quote may stand alone: only double quotes make a string."""

_DEFINITIONS: Final = (
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
    re.compile(r"^#{1,6}\s+(.+?)\s*#*$"),
)  # fmt: skip
_C_LIKE: Final = re.compile(r"(?:^|[\s*&:~])([A-Za-z_]\w*)\s*\([^;]*$")
_HEADING: Final = _DEFINITIONS[-1]
_WORD: Final = re.compile(r"[A-Za-z_$][\w$]{2,79}")
_KEYWORDS: Final = """
    and any are args assert async await bool boolean break case catch char class const continue
    def default del delete elif else enum except export extends false final finally float for from
    func function global goto implements import int interface lambda let list long map match new
    nil none not null object package pass private protected public raise return self set short
    static str string struct super switch the this throw throws true try type typeof undefined
    union unsigned use using var void while with yield None True False
    """
_COMMON: Final = frozenset(_KEYWORDS.split())


def language(path: str) -> str:
    """The ending of a path, in lower case, by which its comments are known."""
    name = PurePosixPath(path)
    return _NAMED.get(name.name.lower(), name.suffix.lower().removeprefix("."))


def kind_of(path: str, removed: Sequence[str], added: Sequence[str]) -> Kind:
    """What a hunk changes: `space` only, `comment`s (and space), or code."""
    if len(removed) + len(added) > MOST_LINES:
        return "code"
    ending = language(path)
    if _spaceless(removed, ending) == _spaceless(added, ending):
        return "space"
    if ending in _PROSE or ending not in _COMMENTS:
        return "code"
    old, new = ([_code(line, ending) for line in side] for side in (removed, added))
    return "comment" if _spaceless(old, ending) == _spaceless(new, ending) else "code"


def symbols_of(path: str, lines: Sequence[str]) -> list[str]:
    """The names that the lines define, in their order, each once."""
    headings = language(path) in {"md", "markdown"}
    named = (_defined(line, headings) for line in lines[:MOST_LINES])
    return list(dict.fromkeys(name for name in named if name))


def header_symbol(path: str, header: str) -> str | None:
    """The definition that a hunk's header tells."""
    named = _defined(header, language(path) in {"md", "markdown"})
    if named or not header:
        return named
    called = _C_LIKE.search(header)
    return called[1] if called and called[1] not in _COMMON else None


def words_of(path: str, removed: Sequence[str], added: Sequence[str]) -> list[str]:
    """Identifiers of code in the lines, those on one side alone first; no text of a string, where a
    secret may stand, and none of a comment."""
    ending = language(path)
    if ending in _PROSE or ending not in _COMMENTS:
        return []
    old, new = (dict.fromkeys(_words(side[:MOST_LINES], ending)) for side in (removed, added))
    alone = [w for w in (*old, *new) if (w in old) != (w in new)]
    return list(dict.fromkeys([*alone, *old]))


def _defined(line: str, headings: bool) -> str | None:
    for pattern in _DEFINITIONS:
        if (pattern is _HEADING) != headings:
            continue
        found = pattern.match(line)
        if found:
            return found[1][:200]
    return None


def _words(lines: Sequence[str], ending: str) -> Iterator[str]:
    for line in lines:
        for word in _WORD.findall(_code(line, ending, strings=False)):
            if word not in _COMMON:
                yield word


def _code(line: str, ending: str, strings: bool = True) -> str:
    """The line without its comments; on wish without its strings."""
    return _pattern(ending).sub(
        lambda found: found[0] if strings and found["string"] is not None else " ", line
    )


_PATTERNS: dict[str, re.Pattern[str]] = {}


def _pattern(ending: str) -> re.Pattern[str]:
    if ending not in _PATTERNS:
        string = _DOUBLE if ending in _APOSTROPHES else _STRING
        _PATTERNS[ending] = re.compile(f"(?P<string>{string})|{_COMMENTS[ending]}")
    return _PATTERNS[ending]


def _spaceless(lines: Sequence[str], ending: str) -> list[str]:
    """The lines that say something, each with its runs of blanks as one; joined where neither line
    ends nor blanks matter. Where the indentation is code it stays."""
    told = [line.rstrip() for line in lines if line.strip()]
    if ending in _INDENTED:
        return [line[: len(line) - len(line.lstrip())] + _joined(line) for line in told]
    if ending in _PROSE:
        return " ".join(told).split()
    joined = "\n".join(_joined(line) for line in told)
    return [re.sub(r"(?<!\w)\n|\n(?!\w)", "", joined)]


def _joined(line: str) -> str:
    """The line without blanks but those between two words and those inside strings."""
    pieces = re.split(f"({_STRING})", line)
    return "".join(
        one if place % 2 else re.sub(r"(?<!\w)\s+|\s+(?!\w)", "", one).replace("\t", " ")
        for place, one in enumerate(pieces)
    )
