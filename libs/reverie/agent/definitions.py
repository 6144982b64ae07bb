"""The definitions of a source file and their lines: by tree-sitter where a grammar is at hand, else
by the form of each line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import tree_sitter

from reverie.agent.git_words import language, symbols_of

MOST_BYTES = 1024 * 1024
"""Of a file; what is longer is no source that anybody wrote."""

_GRAMMARS = {
    **dict.fromkeys(("py", "pyi"), ("tree_sitter_python", "language")),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), ("tree_sitter_javascript", "language")),
    **dict.fromkeys(("ts", "mts", "cts"), ("tree_sitter_typescript", "language_typescript")),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rs": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
}
_ENDS = ("_definition", "_declaration", "_item", "_spec", "_signature", "_declarator", "_alias")
_WHOLE = frozenset({"decorated_definition", "export_statement", "lexical_declaration"})
"""What belongs to the definition inside: its decorators, `export const`."""
_NONE = frozenset({"parameter_declaration"})


@dataclass(frozen=True)
class Definition:
    """A definition by its plain name, its first and last line."""

    name: str
    first: int
    last: int


def definitions(path: str, source: bytes) -> list[Definition]:
    """The definitions of a file in their order; none of what is too long or no text."""
    if len(source) > MOST_BYTES or b"\0" in source[:8000]:
        return []
    parser = _parser(language(path))
    if parser is not None:
        return list(_named(parser.parse(source).root_node))
    return list(_by_form(path, source.decode(errors="replace").splitlines()))


@cache
def _parser(ending: str) -> tree_sitter.Parser | None:
    grammar = _GRAMMARS.get(ending)
    if grammar is None:
        return None
    made: Callable[[], object] = getattr(import_module(grammar[0]), grammar[1])
    return tree_sitter.Parser(tree_sitter.Language(made()))


def _named(root: tree_sitter.Node) -> Iterator[Definition]:
    """Walks without recursion: a file may nest deeper than the interpreter may."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        defines = node.type.endswith(_ENDS) and node.type not in _NONE
        name = node.child_by_field_name("name") if defines else None
        if name is not None and name.text:
            whole = node
            while whole.parent is not None and whole.parent.type in _WHOLE:
                whole = whole.parent
            plain = name.text.decode(errors="replace")
            yield Definition(plain, whole.start_point[0] + 1, whole.end_point[0] + 1)
        waiting += reversed(node.children)


def _by_form(path: str, lines: Sequence[str]) -> Iterator[Definition]:
    """A line that defines a name, to the next one that stands no further in."""
    for n, line in enumerate(lines):
        for name in symbols_of(path, [line]):
            depth = _depth(line)
            last = n
            for after in range(n + 1, len(lines)):
                if lines[after].strip() and _depth(lines[after]) <= depth:
                    closes = lines[after].strip()[0] in ")}]" or lines[after].split()[0] == "end"
                    last = after if closes else last
                    break
                last = after if lines[after].strip() else last
            yield Definition(name, n + 1, last + 1)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
