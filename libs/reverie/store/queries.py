"""SQL lives in `sql/*.sql` as named, described blocks; this reads them.

A block starts with `-- name: <name>`, goes on with a comment that says what it is for, and
takes native parameters `$1`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_BLOCK = re.compile(r"(?m)^-- name: (\w+)\n")


@dataclass(frozen=True)
class Query:
    """One named statement."""

    name: str
    description: str
    sql: str


def parse(text: str) -> dict[str, Query]:
    """The named blocks of a file's text."""
    parts = _BLOCK.split(text)
    return {name: _query(name, body) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _query(name: str, body: str) -> Query:
    lines = body.strip().splitlines()
    comment = [line for line in lines if line.startswith("--")]
    description = " ".join(line.lstrip("- ") for line in comment)
    sql = "\n".join(line for line in lines if not line.startswith("--")).rstrip(";")
    return Query(name, description, sql)


@cache
def load() -> dict[str, Query]:
    """All queries of the package by name; a name stands once."""
    found: dict[str, Query] = {}
    for file in sorted((files("reverie.store") / "sql").iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".sql"):
            continue
        for name, query in parse(file.read_text(encoding="utf-8")).items():
            if name in found:
                raise ValueError(f"the query name {name} stands twice")
            found[name] = query
    return found


def query(name: str) -> Query:
    """The query of that name."""
    return load()[name]
