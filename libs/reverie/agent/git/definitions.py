"""Finds the definitions in a source file: by tree-sitter, or line by line without a grammar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import tree_sitter

from reverie.agent.git.hunk_analysis import find_symbols, source_extension

MAX_SOURCE_BYTES = 1024 * 1024
"""Limit per file. Larger files are treated as generated."""

_GRAMMARS = {
    **dict.fromkeys(("py", "pyi"), ("tree_sitter_python", "language")),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), ("tree_sitter_javascript", "language")),
    **dict.fromkeys(("ts", "mts", "cts"), ("tree_sitter_typescript", "language_typescript")),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rs": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
}
_DEFINITION_SUFFIXES = (
    "_definition",
    "_declaration",
    "_item",
    "_spec",
    "_signature",
    "_declarator",
    "_alias",
)
_WRAPPER_TYPES = frozenset({"decorated_definition", "export_statement", "lexical_declaration"})
"""Lines that belong to the definition below them: decorators, `export const`."""
_EXCLUDED_TYPES = frozenset({"parameter_declaration"})


@dataclass(frozen=True)
class Definition:
    """A definition by its plain name, its first and last line."""

    name: str
    first_line: int
    last_line: int


def find_definitions(path: str, source: bytes) -> list[Definition]:
    """Finds the definitions of a file in order; empty if the file is too long or not text."""
    if len(source) > MAX_SOURCE_BYTES or b"\0" in source[:8000]:
        return []
    parser = _load_parser(source_extension(path))
    if parser is not None:
        return list(_definitions_in_tree(parser.parse(source).root_node))
    return list(_definitions_in_lines(path, source.decode(errors="replace").splitlines()))


@cache
def _load_parser(extension: str) -> tree_sitter.Parser | None:
    grammar = _GRAMMARS.get(extension)
    if grammar is None:
        return None
    load_language: Callable[[], object] = getattr(import_module(grammar[0]), grammar[1])
    return tree_sitter.Parser(tree_sitter.Language(load_language()))


def _definitions_in_tree(root: tree_sitter.Node) -> Iterator[Definition]:
    """Walks without recursion: a file may nest deeper than the interpreter may."""
    stack = [root]
    while stack:
        node = stack.pop()
        is_definition = (
            node.type.endswith(_DEFINITION_SUFFIXES) and node.type not in _EXCLUDED_TYPES
        )
        name = node.child_by_field_name("name") if is_definition else None
        if name is not None and name.text:
            outer = node
            while outer.parent is not None and outer.parent.type in _WRAPPER_TYPES:
                outer = outer.parent
            plain = name.text.decode(errors="replace")
            yield Definition(plain, outer.start_point[0] + 1, outer.end_point[0] + 1)
        stack += reversed(node.children)


def _definitions_in_lines(path: str, lines: Sequence[str]) -> Iterator[Definition]:
    """Finds the lines that define a name.

    Each definition ends before the next line with the same or less indentation.
    """
    for start, line in enumerate(lines):
        for name in find_symbols(path, [line]):
            indentation = _indentation_of(line)
            last = start
            for following in range(start + 1, len(lines)):
                if lines[following].strip() and _indentation_of(lines[following]) <= indentation:
                    is_closing = (
                        lines[following].strip()[0] in ")}]" or lines[following].split()[0] == "end"
                    )
                    last = following if is_closing else last
                    break
                last = following if lines[following].strip() else last
            yield Definition(name, start + 1, last + 1)


def _indentation_of(line: str) -> int:
    return len(line) - len(line.lstrip())
