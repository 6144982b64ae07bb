"""Names whose slug looks like a credential: each has a scope that is accepted again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.access.scopes import (
    agent_levels,
    build_scope,
    default_read_scopes,
    format_display_name,
    home_levels,
    normalize_agent_name,
    parse_pattern,
    parse_scope,
    slugify,
)
from reverie.domain.core.errors import InvalidInput
from reverie.domain.redaction.redactor import redact
from reverie.domain.text.characters import is_blank

BRANCHES = (
    "KEY_00/000001/0",
    "sk/0000000000000",
    "KEY_KEYKEYKEYKEY",
    "Fix/client_secret_4711",
    "Feature/API-KEY/ISSUE.11585",
)
fragments = st.one_of(
    st.sampled_from(["KEY", "key", "Token", "password", "api", "secret", "sk", "ghp", "AKIA"]),
    st.sampled_from(["auth", "aws", "user", "id", "/sub/", "-u", "_", "-", "/", ".", "=", ":"]),
    st.text("0123456789abcdefABCDEF", min_size=1, max_size=30),
    st.text(max_size=3),
)
names = (
    st.lists(fragments, min_size=1, max_size=6)
    .map("".join)
    .filter(lambda name: not is_blank(name) and not is_blank(format_display_name(name)))
)


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_branch_that_resembles_a_credential_has_a_scope_of_its_own(branch: str) -> None:
    scope = parse_scope(f"project/p/feature/{branch}")
    assert scope == build_scope(home_levels("p", None, branch)) == parse_scope(scope)
    assert not redact(scope).count
    assert len({slugify(name) for name in BRANCHES}) == len(BRANCHES)


def test_a_credential_is_no_name() -> None:
    for text in ("feature/key_00-000001-0-e277f0", "user/ghp_" + "a1B2" * 9):
        with pytest.raises(InvalidInput, match="credential"):
            parse_scope(text)


@pytest.mark.parametrize("name", ["/sub/", "claude/sub/", "/sub/reviewer", "a/sub/ "])
def test_an_agent_without_one_of_two_names_has_a_plain_name(name: str) -> None:
    assert [word for word, _ in agent_levels(name)] == ["agent"]
    assert "/" not in normalize_agent_name(name)


@given(names)
def test_a_slug_of_any_name_is_no_credential_and_its_own_slug(name: str) -> None:
    slug, agent = slugify(name), normalize_agent_name(name)
    assert not redact(slug).count
    assert slugify(slug) == slug
    assert normalize_agent_name(agent) == agent
    assert parse_scope(f"agent/{agent}") == f"agent/{agent}"


@given(names, names, names)
def test_what_a_session_of_any_names_reads_is_accepted_again(
    project: str, agent: str, branch: str
) -> None:
    for levels in (home_levels(project, agent, branch), home_levels(None, agent)):
        home = build_scope(levels)
        assert parse_scope(home) == home
        for pattern in default_read_scopes(home, agent, project, slugify(branch)):
            assert parse_pattern(pattern) == pattern
