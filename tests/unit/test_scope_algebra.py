"""What grants leave to an agent, over any patterns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.access import Principal, Role
from reverie.domain.scopes import (
    agent_name,
    common,
    matches,
    reading_scopes,
    without_other_agents,
)

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
    return any(matches(grant, one) for grant in grants)


@given(patterns, patterns, scope)
def test_what_two_lists_have_in_common_covers_what_both_cover(
    one: list[str], other: list[str], asked: str
) -> None:
    assert _covers(common(one, other), asked) is (_covers(one, asked) and _covers(other, asked))


@given(patterns, agent, scope)
def test_a_bound_key_loses_other_agents_scopes_and_nothing_else(
    grants: list[str], who: str, asked: str
) -> None:
    left = _covers(without_other_agents(grants, who), asked)
    own = asked == f"agent/{who}" or asked.startswith(f"agent/{who}/")
    if own or not asked.startswith("agent/"):
        assert left is _covers(grants, asked)
    elif left:
        parent = f"agent/{who.split('/')[0]}"
        assert asked == parent
        assert {parent, f"{parent}/*"} & set(grants)


@given(patterns, agent)
def test_taking_away_twice_takes_away_no_more(grants: list[str], who: str) -> None:
    once = without_other_agents(grants, who)
    assert set(without_other_agents(once, who)) == set(once)


@given(scope, agent, agent, patterns)
def test_a_session_never_reads_another_agents_scopes(
    home: str, who: str, other: str, grants: list[str]
) -> None:
    key = Principal(1, "t", "k", Role.WRITER, tuple(grants), (), agent=who)
    seen = key.seen_through(reading_scopes(home, who, None))
    private = f"agent/{other}"
    own = private == f"agent/{who}" or private.startswith(f"agent/{who}/")
    parent = who.startswith(f"{other}/sub/")
    assert own or parent or not _covers(seen, private)


@given(st.text(min_size=1, max_size=30).filter(lambda text: text.strip()))
def test_the_name_of_an_agent_is_its_own_name(text: str) -> None:
    assert agent_name(agent_name(text)) == agent_name(text)
