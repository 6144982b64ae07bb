"""Every named SQL query is described, used, filters by tenant, and is accepted by Postgres."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

from reverie import store
from reverie.store.db.connections import prepare_connection
from reverie.store.db.queries import load_queries, parse
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import app_connection

STORE = Path(store.__path__[0])
NOT_QUERIES = {"schema", "migrations"}
RUNNERS = {"fetch_rows", "fetch_row", "fetch_value", "call", "call_once", "get_sql"}


def _names_asked_for() -> Iterator[str]:
    """The first text among the arguments of whatever runs SQL by its name."""
    for node in _walk_store():
        if isinstance(node, ast.Call) and _callee(node.func) in RUNNERS:
            texts = [a.value for a in node.args[:3] if isinstance(a, ast.Constant)]
            yield from (text for text in texts[:1] if isinstance(text, str))


@cache
def _walk_store() -> tuple[ast.AST, ...]:
    files = STORE.glob("*/*.py")
    return tuple(chain(*(ast.walk(ast.parse(file.read_text(encoding="utf-8"))) for file in files)))


def _callee(function: ast.expr) -> str | None:
    match function:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return None


async def test_every_query_is_accepted_by_the_database_for_the_service_role(
    shared_database: DatabaseUrls,
) -> None:
    refused = {}
    async with app_connection(shared_database.service_url) as connection:
        await prepare_connection(connection)
        for name, query in load_queries().items():
            try:
                await connection.prepare(query.sql)
            except Exception as error:
                refused[name] = repr(error)
    assert refused == {}


def test_every_query_has_a_description_and_one_statement() -> None:
    queries = load_queries().values()
    assert [q.name for q in queries if len(q.description.split()) < 3] == []
    assert [q.name for q in queries if ";" in q.sql] == []


def test_every_statement_is_named_in_the_code() -> None:
    texts = {node.value for node in _walk_store() if isinstance(node, ast.Constant)}
    assert set(load_queries()) - texts == set()


async def test_every_other_name_is_a_function_of_the_schema(shared_database: DatabaseUrls) -> None:
    async with app_connection(shared_database.service_url) as connection:
        found = await connection.fetch(
            "select proname from pg_proc where pronamespace = 'reverie'::regnamespace"
        )
    known = set(load_queries()) | {row["proname"] for row in found}
    assert set(_names_asked_for()) - known == set()


def test_every_file_of_statements_begins_with_a_name() -> None:
    queries = [file for file in STORE.glob("*/*.sql") if file.parent.name not in NOT_QUERIES]
    assert len(queries) > 20
    for file in queries:
        assert file.read_text(encoding="utf-8").startswith("-- name: "), file


def test_a_block_has_its_name_its_description_and_its_statement() -> None:
    text = "-- name: one\n-- What it\n-- is for.\nselect 1;\n\n-- name: two\n-- Two.\nselect 2\n"
    found = parse(text)
    assert [(q.name, q.description, q.sql) for q in found.values()] == [
        ("one", "What it is for.", "select 1"),
        ("two", "Two.", "select 2"),
    ]


async def test_every_statement_filters_every_table_by_tenant(shared_database: DatabaseUrls) -> None:
    async with app_connection(shared_database.service_url) as connection:
        found = await connection.fetch(
            "select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid"
            " where a.attname = 'tenant' and c.relnamespace = 'reverie'::regnamespace"
            " and c.relkind in ('r', 'p', 'v') and not c.relispartition"
        )
    tables = "|".join(row["relname"] for row in found)
    touches = re.compile(rf"\b(?:from|join|update|into|using)\s+(?:{tables})\b(?!\()")
    names = re.compile(r"\btenant = \$1|\(tenant, ")
    counted = {
        query.name: (len(touches.findall(query.sql)), len(names.findall(query.sql)))
        for query in load_queries().values()
    }
    assert sum(tables for tables, _ in counted.values()) > 50
    assert [name for name, (tables, said) in counted.items() if said < tables] == []
