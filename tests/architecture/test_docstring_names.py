"""Names in docstrings are those of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"`([A-Za-z_][\w.]*)(?:\(\))?`")
WORD = re.compile(r"[A-Za-z_]\w*")
COMMENT = re.compile(r"#.*")
CODE_FOLDERS = ("libs", "services")
NAMES_OF_OTHERS = frozenset(
    {
        "Basic",
        "PGDATA",
        "X25519PrivateKey",
        "docs.example.co.uk",
        "getUser",
        "getUserById",
        "get_user",
        "l3.q.b",
        "malloc.h",
        "merge_request",
        "publicKeyToken",
    }
)
"""Names of protocols and libraries, and examples of a text that is parsed."""


def list_docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yields the strings that are statements: the docstrings, also those of constants."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as docstring):
                yield docstring


def read_code_and_names(path: Path) -> tuple[str, set[str]]:
    """The text of a module without docstrings and comments, and the names in its docstrings."""
    text = path.read_text()
    lines, names = text.splitlines(), set[str]()
    for docstring in list_docstrings(ast.parse(text)):
        names.update(NAME.findall(str(docstring.value)))
        for number in range(docstring.lineno - 1, docstring.end_lineno or docstring.lineno):
            lines[number] = ""
    return COMMENT.sub("", "\n".join(lines)), names


def test_every_name_in_a_docstring_occurs_in_the_code() -> None:
    files = [path for folder in CODE_FOLDERS for path in (ROOT / folder).rglob("*")]
    words = {
        word
        for path in files
        if path.suffix in {".sql", ".proto"}
        for word in WORD.findall(path.read_text())
    }
    names_by_module: dict[str, set[str]] = {}
    for path in files:
        if path.suffix == ".py" and "_pb2" not in path.name:
            code, names = read_code_and_names(path)
            words.update(WORD.findall(code))
            names_by_module[str(path.relative_to(ROOT))] = names
    lost = {
        f"{module}: {name}"
        for module, names in names_by_module.items()
        for name in names - NAMES_OF_OTHERS
        if not words.issuperset(part for part in name.split(".") if not part.isdigit())
    }
    assert (bool(names_by_module), lost) == (True, set())
