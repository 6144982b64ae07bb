"""Finds the SQL of a name: a statement of the .sql files, or a function of the schema."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_QUERY_ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"(?m)^-- name: (\w+)\n")


@dataclass(frozen=True)
class NamedQuery:
    """One named statement."""

    name: str
    description: str
    sql: str


def parse(text: str) -> dict[str, NamedQuery]:
    """The named blocks of a file's text."""
    parts = _BLOCK.split(text)
    return {
        name: _parse_query(name, body) for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def _parse_query(name: str, body: str) -> NamedQuery:
    lines = body.strip().splitlines()
    comment = [line for line in lines if line.startswith("--")]
    description = " ".join(line.lstrip("- ") for line in comment)
    sql = "\n".join(line for line in lines if not line.startswith("--")).rstrip(";")
    return NamedQuery(name, description, sql)


@cache
def load_queries() -> dict[str, NamedQuery]:
    """Loads all queries of the package by name; names are unique."""
    queries: dict[str, NamedQuery] = {}
    for file in sorted(_QUERY_ROOT.glob("*/*.sql")):
        for name, parsed in parse(file.read_text(encoding="utf-8")).items():
            if name in queries:
                raise ValueError(f"the query name {name} stands twice")
            queries[name] = parsed
    return queries


def get_query(name: str) -> NamedQuery:
    """The query of that name."""
    return load_queries()[name]


def get_sql(name: str, arg_count: int) -> str:
    """The statement of that name, or else a call of the schema's function of that name."""
    if (query := load_queries().get(name)) is not None:
        return query.sql
    parameters = ", ".join(f"${number}" for number in range(1, arg_count + 1))
    return f"select * from {name}({parameters})"  # noqa: S608 (names stand in the code)
