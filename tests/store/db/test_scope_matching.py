"""SQL and domain agree on which scopes a grant covers."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reverie.domain.access.scopes import parse_scope, scope_matches
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import PATH, add_tenants, admin_rows

name = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,3}", fullmatch=True)
short = st.sampled_from(["a", "b", "ab", "a_b", "a-b", "project", "topic"])
part = st.one_of(short, name)
scope = st.one_of(
    st.just("global"),
    st.builds("user/{}".format, part),
    st.builds("agent/{}".format, part),
    st.builds("agent/{}/sub/{}".format, part, part),
    st.builds("project/{}".format, part),
    st.builds("project/{}/feature/{}".format, part, part),
    st.builds("project/{}/topic/{}/{}".format, part, part, part),
    st.builds("topic/{}/{}".format, part, part),
)


@st.composite
def pattern(draw: st.DrawFn) -> str:
    """`*`, a scope, what lies below a part of one, or any text that looks like it."""
    path = draw(scope)
    parts = path.split("/")
    head = "/".join(parts[: draw(st.integers(1, len(parts)))])
    odd = st.text("abp/*_%\\{}\"', ", max_size=6)
    return draw(st.sampled_from(["*", path, f"{head}/*", head, f"{head}*"]) | odd)


questions = st.lists(st.tuples(st.lists(pattern(), max_size=4), scope), min_size=20, max_size=20)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(questions)
@example([(["project/a/*"], "project/a"), (["project/a/*"], "project/ab"), ([], "global")])
@example([(["a_b/*", "project/a%"], "project/a_b"), (["/*"], "global"), (["*/*"], "global")])
def test_grants_cover_the_same_scopes_in_sql_and_in_the_domain(
    shared_database: DatabaseUrls, asked: list[tuple[list[str], str]]
) -> None:
    with psycopg.connect(shared_database.admin_url, options=PATH) as connection:
        found = [
            connection.execute("select scope_matches(%s, %s)", [patterns, one]).fetchone()
            for patterns, one in asked
        ]
    expected = [(any(scope_matches(p, one) for p in patterns),) for patterns, one in asked]
    assert found == expected


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scope)
def test_every_scope_of_the_grammar_has_at_most_five_parts(path: str) -> None:
    assert parse_scope(path) == path
    assert path.count("/") < 5


def test_a_list_of_plain_scopes_is_looked_up_in_the_scope_index(database: DatabaseUrls) -> None:
    [tenant] = add_tenants(database.admin_url, "one")
    admin_rows(
        database.admin_url,
        "insert into memory (tenant, id, scope, kind, tier, content, hash, words, terms,"
        " confidence, source) select %s, gen_random_uuid(), 'project/p' || n, 'context', 'warm',"
        " 'x', n::text::bytea, '', 0, 1, 'test' from generate_series(1, 3000) n",
        tenant,
    )
    admin_rows(database.admin_url, "analyze memory")
    plan = admin_rows(
        database.admin_url,
        "explain select from memory where tenant = %s and scope_matches(%s, scope)",
        tenant,
        ["project/p7", "global"],
    )
    text = "\n".join(row[0] for row in plan)
    assert "scope = ANY" in text
    assert "covers" not in text
    assert "Index Cond: ((tenant = " in text


@pytest.mark.parametrize("patterns", [["*"], ["project/*"], ["project/p7", "global"]])
def test_the_planner_inlines_the_function(
    shared_database: DatabaseUrls, patterns: list[str]
) -> None:
    plan = admin_rows(
        shared_database.admin_url,
        "explain select from memory where scope_matches(%s, scope)",
        patterns,
    )
    assert "covers" not in "\n".join(row[0] for row in plan)
