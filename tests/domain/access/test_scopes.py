"""The grammar of scopes and patterns, slugs, and what a pattern covers."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reverie.contracts.events import dream_subject, git_subject
from reverie.domain.access.scopes import (
    MAX_NAME_LENGTH,
    MAX_SLUG_LENGTH,
    build_scope,
    default_read_scopes,
    home_levels,
    normalize_agent_name,
    parse_pattern,
    parse_scope,
    project_of_scope,
    scope_matches,
    slugify,
)
from reverie.domain.core.errors import InvalidInput
from reverie.domain.text.characters import is_blank

NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
name = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,10}", fullmatch=True)


@pytest.mark.parametrize(
    "text",
    [
        "global",
        "user/ann",
        "agent/claude",
        "agent/claude/sub/reviewer",
        "session/s-1",
        "project/p",
        "project/p/feature/f_1",
        "project/p/topic/a",
        "project/p/topic/a/b",
        "feature/f",
        "topic/a/b",
        "project/" + "x" * MAX_SLUG_LENGTH,
    ],
)
def test_every_form_of_the_grammar_is_accepted_unchanged(text: str) -> None:
    assert parse_scope(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "/",
        "elsewhere",
        "project",
        "project/",
        "project//p",
        "project/p/feature",
        "project/p/topic/a/b/c",
        "agent/a/sub",
        "global/x",
        "user/ann/x",
        "project/p/*",
        "*",
        "project/../p",
        "agent/a/sub/b/sub/c",
        "project/shop/feat/login",
        "agent/team/bot",
    ],
)
def test_an_invalid_scope_is_refused_with_the_grammar(text: str) -> None:
    with pytest.raises(InvalidInput, match="global, user/<u>"):
        parse_scope(text)


@pytest.mark.parametrize(
    "text",
    [
        "project/p\nx",
        "project/..",
        "project/\u200b\u2060",
        "project/" + "x" * (MAX_NAME_LENGTH + 1),
        "project/p/feature/*",
        "project/p/feature/feat/*",
        "project/p/feature/../x",
        "feature/a//b",
        "feature/a/",
        "topic/ /b",
    ],
)
def test_an_invalid_name_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no name: a name is 1 to 200 characters"):
        parse_scope(text)


@pytest.mark.parametrize(
    ("pattern", "canonical"),
    [
        ("*", "*"),
        ("project/*", "project/*"),
        ("project/p/*", "project/p/*"),
        ("project/p/feature/*", "project/p/feature/*"),
        ("agent/a/sub/*", "agent/a/sub/*"),
        ("topic/a/*", "topic/a/*"),
        (" vp/* ", "agent/*"),
        ("feature/feat/login.v2", "feature/" + slugify("feat/login.v2")),
        ("project/My Shop/*", f"project/{slugify('My Shop')}/*"),
    ],
)
def test_a_pattern_is_a_scope_or_everything_below_one(pattern: str, canonical: str) -> None:
    assert parse_pattern(pattern) == canonical
    assert parse_pattern(canonical) == canonical


@pytest.mark.parametrize("pattern", ["nope/*", "feature/feat/*", "project/p/feature/f/*", "a/**"])
def test_a_pattern_over_a_scope_without_children_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        parse_pattern(pattern)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("vp/claude", "agent/claude"),
        ("VP/claude", "agent/claude"),
        ("vp/claude/sub/x", "agent/claude/sub/x"),
        ("group/standup", "session/standup"),
        ("Project/p", "project/p"),
        ("GLOBAL", "global"),
        ("  project/p  ", "project/p"),
    ],
)
def test_aliases_and_the_case_of_the_first_word_are_accepted(text: str, canonical: str) -> None:
    assert parse_scope(text) == canonical


@pytest.mark.parametrize("parse", [parse_scope, parse_pattern])
@given(text=st.text(max_size=40))
def test_what_is_accepted_is_accepted_unchanged_again(
    parse: Callable[[str], str], text: str
) -> None:
    try:
        found = parse(text)
    except InvalidInput:
        return
    assert parse(found) == found


@given(st.text(min_size=1, max_size=200))
def test_any_name_becomes_a_part_of_a_scope(text: str) -> None:
    assume(not is_blank(text))
    made = slugify(text)
    assert NAME.fullmatch(made)
    assert len(made) <= MAX_SLUG_LENGTH
    assert parse_scope(f"project/{made}") == f"project/{made}"
    assert slugify(made) == made
    agent = normalize_agent_name(text)
    assert normalize_agent_name(agent) == agent
    assert re.fullmatch(r"[\w.-]+", git_subject("t", made))


@given(name)
def test_a_plain_name_stays_unchanged(text: str) -> None:
    assume(not text.endswith(("-", "_")))
    assert slugify(text) == text


@pytest.mark.parametrize(
    "names",
    [
        ["feat/login.v2", "feat-login-v2", "feat/login-v2", "feat.login.v2", "Feat/login.v2"],
        ["Login", "login", "LOGIN"],
        ["日本", "中国", "🦀", "!!!", "---"],
        ["a" * 200, "a" * 201, "a" * 57],
        ["x-", "x", "x_", "_x"],
    ],
)
def test_different_names_stay_distinct(names: list[str]) -> None:
    assert len({slugify(one) for one in names}) == len(names)


@given(st.lists(st.text("ab/.- A", min_size=1, max_size=6), unique=True, min_size=2, max_size=40))
def test_normalized_names_do_not_collide(names: list[str]) -> None:
    stripped = {one.strip() for one in names if one.strip()}
    assert len({slugify(one) for one in stripped}) == len(stripped)


def test_a_name_without_content_is_refused() -> None:
    for text in ("", "   ", "\t\n"):
        with pytest.raises(InvalidInput):
            slugify(text)


def test_two_unicode_forms_of_a_name_are_one() -> None:
    assert slugify("café") == slugify("cafe\u0301")


@pytest.mark.parametrize(
    ("pattern", "scope", "covered"),
    [
        ("*", "agent/a", True),
        ("global", "global", True),
        ("project/a/*", "project/a", True),
        ("project/a/*", "project/a/feature/f", True),
        ("project/a/*", "project/ab", False),
        ("project/a", "project/a/feature/f", False),
        ("project/*", "global", False),
        ("project/a*", "project/ab", False),
        ("*/a", "project/a", False),
        ("", "global", False),
    ],
)
def test_a_pattern_covers_its_scope_and_everything_below(
    pattern: str, scope: str, covered: bool
) -> None:
    assert scope_matches(pattern, scope) is covered


def test_the_project_of_a_scope_is_found() -> None:
    assert project_of_scope("project/p/feature/f") == "p"
    assert project_of_scope("agent/a") is None


@pytest.mark.parametrize(
    ("project", "agent", "branch", "scope"),
    [
        ("p", "ann", None, "project/p"),
        ("p", "ann", "main", "project/p"),
        ("p", "ann", "develop", "project/p"),
        ("p", "ann", "login", "project/p/feature/login"),
        (None, "ann", "login", "agent/ann"),
        (None, None, None, "global"),
    ],
)
def test_lasting_memories_go_to_the_home_scope(
    project: str | None, agent: str | None, branch: str | None, scope: str
) -> None:
    assert build_scope(home_levels(project, agent, branch)) == scope


def test_a_session_reads_its_home_its_parents_its_own_scope_and_global() -> None:
    assert default_read_scopes("project/p/feature/f", "ann", "bob", "g") == [
        "project/p/feature/f",
        "project/p",
        "project/p/topic/*",
        "agent/ann",
        "user/bob",
        "session/g",
        "feature/f",
        "topic/*",
        "global",
    ]
    assert default_read_scopes("global", None, None) == ["global", "topic/*"]


@given(st.text(min_size=1, max_size=40))
def test_any_scope_makes_a_valid_subject(scope: str) -> None:
    assert re.fullmatch(r"dream\.t\.[0-9a-f]{16}\.requested", dream_subject("t", scope))
