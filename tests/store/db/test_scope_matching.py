"""SQL and domain agree on which scopes a grant covers."""

from __future__ import annotations

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reverie.domain.access.scopes import parse_scope, scope_matches
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import admin_rows

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


questions = st.lists(st.tuples(st.lists(pattern(), max_size=4), scope), min_size=10, max_size=10)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(questions)
@example([(["project/a/*"], "project/a"), (["project/a/*"], "project/ab"), ([], "global")])
@example([(["a_b/*", "project/a%"], "project/a_b"), (["/*"], "global"), (["*/*"], "global")])
def test_grants_cover_the_same_scopes_in_sql_and_in_the_domain(
    shared_database: DatabaseUrls, asked: list[tuple[list[str], str]]
) -> None:
    found = [
        admin_rows(shared_database.admin_url, "select scope_matches(%s, %s)", patterns, one)[0]
        for patterns, one in asked
    ]
    expected = [(any(scope_matches(p, one) for p in patterns),) for patterns, one in asked]
    assert found == expected


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scope)
def test_every_scope_of_the_grammar_has_at_most_five_parts(path: str) -> None:
    assert parse_scope(path) == path
    assert path.count("/") < 5
