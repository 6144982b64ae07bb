"""Intersection of scope patterns and what grants leave to an agent."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import assume, given
from hypothesis import strategies as st

from reverie.domain.access.principals import KeyRole, Principal
from reverie.domain.access.scopes import (
    default_read_scopes,
    format_scope,
    intersect_patterns,
    parse_display_names,
    parse_pattern,
    parse_scope,
    restrict_to_agent,
    scope_matches,
)
from reverie.domain.core.errors import InvalidInput

part = st.sampled_from(["a", "b", "ab", "sub"])
scope = st.one_of(
    st.just("global"),
    *(st.builds(f"{head}/{{}}".format, part) for head in ("user", "agent", "session", "project")),
    st.builds("agent/{}/sub/{}".format, part, part),
    st.builds("project/{}/feature/{}".format, part, part),
    st.builds("project/{}/topic/{}/{}".format, part, part, part),
)


@st.composite
def pattern(draw: st.DrawFn) -> str:
    parts = draw(scope).split("/")
    head = "/".join(parts[: draw(st.integers(1, len(parts)))])
    return draw(st.sampled_from(["*", "/".join(parts), f"{head}/*"]))


patterns = st.lists(pattern(), max_size=4)
agent = st.one_of(part, st.builds("{}/sub/{}".format, part, part))


def _covers(grants: list[str] | tuple[str, ...], one: str) -> bool:
    return any(scope_matches(grant, one) for grant in grants)


@given(patterns, patterns, scope)
def test_an_intersection_covers_what_both_lists_cover(
    one: list[str], other: list[str], asked: str
) -> None:
    assert _covers(intersect_patterns(one, other), asked) is (
        _covers(one, asked) and _covers(other, asked)
    )


@given(patterns, agent, scope)
def test_a_bound_key_loses_only_other_agents_scopes(
    grants: list[str], who: str, asked: str
) -> None:
    left = _covers(restrict_to_agent(grants, who), asked)
    own = asked == f"agent/{who}" or asked.startswith(f"agent/{who}/")
    if own or not asked.startswith("agent/"):
        assert left is _covers(grants, asked)
    elif left:
        parent = f"agent/{who.split('/')[0]}"
        assert asked == parent
        assert {parent, f"{parent}/*"} & set(grants)


@given(patterns, agent)
def test_restricting_twice_equals_restricting_once(grants: list[str], who: str) -> None:
    once = restrict_to_agent(grants, who)
    assert set(restrict_to_agent(once, who)) == set(once)


@given(scope, agent, agent, patterns)
def test_a_session_never_reads_another_agents_scopes(
    home: str, who: str, other: str, grants: list[str]
) -> None:
    key = Principal(1, "t", "k", KeyRole.WRITER, tuple(grants), (), agent=who)
    seen = key.narrow_to_readable(default_read_scopes(home, who, None))
    private = f"agent/{other}"
    own = private == f"agent/{who}" or private.startswith(f"agent/{who}/")
    parent = who.startswith(f"{other}/sub/")
    assert own or parent or not _covers(seen, private)


SAFE = re.compile(r"[a-z]+(/[a-z0-9][a-z0-9_-]{0,63}){0,5}")
named = st.text(st.characters(exclude_characters="/*", exclude_categories=["C", "Z"]), min_size=1)
words = st.lists(named.filter(lambda one: one not in {".", ".."}), min_size=1, max_size=3)
branch = words.map("/".join)
heads = st.sampled_from(["feature", "project/p/feature", "project/My Shop/feature"])


def _canonical(text: str) -> str:
    try:
        return parse_scope(text)
    except InvalidInput:
        assume(False)
        raise


@given(heads, branch)
def test_any_branch_name_is_a_feature_scope(head: str, name: str) -> None:
    text = f"{head}/{name}"
    scope = _canonical(text)
    assert SAFE.fullmatch(scope)
    assert parse_scope(scope) == scope == parse_pattern(text)
    assert scope_matches(parse_pattern(f"{head}/*"), scope)
    assert not scope_matches(scope, f"{scope}-x")
    assert parse_scope(format_scope(scope, parse_display_names(text))) == scope


@given(st.lists(branch, min_size=2, max_size=5))
def test_different_feature_names_stay_distinct(names: list[str]) -> None:
    scopes = {_canonical(f"feature/{name}") for name in names}
    forms = {unicodedata.normalize("NFKC", name).strip() for name in names}
    assert len(scopes) == len(forms)


@given(st.sampled_from(["user", "agent", "session", "project", "topic", "topic/t"]), named)
def test_any_name_without_a_slash_is_valid_everywhere(head: str, name: str) -> None:
    scope = _canonical(f"{head}/{name}")
    assert SAFE.fullmatch(scope)
    assert list(parse_display_names(f"{head}/{name}")) in ([], [scope])
