"""SQL lives in `sql/*.sql` as named, described blocks; this reads them.

A block starts with `-- name: <name>`, goes on with a comment that says what it is for, and
takes native parameters `$1`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

_BLOCK = re.compile(r"(?m)^-- name: (\w+)\n")
_PARAMETER = re.compile(r"\$(\d+)")


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


def settled(sql: str, args: Sequence[object], own: bool = False) -> tuple[str, list[object]]:
    """A statement with its whole numbers written into it, and the other arguments.

    So its plan, made once, knows the limits. The first argument, the tenant, stays one, and the
    plan is for all tenants, unless it is to be the tenant's `own`.
    """
    stay = [type(one) is not int or (place == 0 and not own) for place, one in enumerate(args)]
    numbers = tuple(None if stays else one for one, stays in zip(args, stay, strict=True))
    return _written(sql, numbers), [one for one, stays in zip(args, stay, strict=True) if stays]


@lru_cache(maxsize=2048)
def _written(sql: str, numbers: tuple[object, ...]) -> str:
    """`numbers` in the order of the parameters; None for one that stays."""
    stay = [place for place, number in enumerate(numbers, start=1) if number is None]
    moved = {place: f"${now}" for now, place in enumerate(stay, start=1)}
    texts = {place: moved.get(place) or str(n) for place, n in enumerate(numbers, start=1)}
    return _PARAMETER.sub(lambda found: texts[int(found[1])], sql)
