"""Finds the SQL of a name: a statement of the .sql files, or a function of the schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

_QUERY_ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"(?m)^-- name: (\w+)\n")
_PARAMETER = re.compile(r"\$(\d+)")


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


def inline_integers(
    sql: str, args: Sequence[object], inline_tenant: bool = False
) -> tuple[str, list[object]]:
    """A statement with its whole numbers written into it, and the other arguments.

    So its plan, made once, knows the limits. The first argument, the tenant, stays one, and the
    plan is for all tenants, unless it is to be the tenant's `inline_tenant`.
    """
    keeps = [
        type(arg) is not int or (index == 0 and not inline_tenant) for index, arg in enumerate(args)
    ]
    numbers = tuple(None if keep_arg else arg for arg, keep_arg in zip(args, keeps, strict=True))
    return _inline(sql, numbers), [
        arg for arg, keep_arg in zip(args, keeps, strict=True) if keep_arg
    ]


@lru_cache(maxsize=2048)
def _inline(sql: str, numbers: tuple[object, ...]) -> str:
    """Returns the statement with numbers in place of parameters.

    `numbers`: in the order of the parameters; None for a parameter that stays.
    """
    kept_indexes = [index for index, number in enumerate(numbers, start=1) if number is None]
    renumbered = {index: f"${new_index}" for new_index, index in enumerate(kept_indexes, start=1)}
    texts = {
        index: renumbered.get(index) or str(value) for index, value in enumerate(numbers, start=1)
    }
    return _PARAMETER.sub(lambda match: texts[int(match[1])], sql)
