"""Independence of a fact's sources, and procedures parsed into steps."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.core.errors import InvalidInput
from reverie.domain.extraction.learned_facts import (
    build_learned_fact,
    extract_root_domain,
    hash_statement,
)
from reverie.domain.formats.procedures import fill_procedure, parse_procedure, render_steps


@pytest.mark.parametrize(
    ("said", "root"),
    [
        ("docs.nats.io", "nats.io"),
        ("https://user@Docs.NATS.io:443/a?b=c", "nats.io"),
        ("www.example.co.uk.", "example.co.uk"),
        ("ann.github.io", "ann.github.io"),
        ("blog.bob.github.io", "bob.github.io"),
        ("bücher.example.de", "example.de"),
        ("192.0.2.7:8080", "192.0.2.7"),
        ("https://[2001:db8::1]/x", "2001:db8::1"),
        ("a.b.io", "b.io"),
    ],
)
def test_a_host_is_reduced_to_its_registered_domain(said: str, root: str) -> None:
    assert extract_root_domain(said) == root


@pytest.mark.parametrize("said", ["localhost", "not one.com", "a..b", "-a.com", "http://"])
def test_an_invalid_domain_is_refused(said: str) -> None:
    with pytest.raises(InvalidInput):
        extract_root_domain(said)


def test_pages_of_one_domain_corroborate_once() -> None:
    tag = build_learned_fact("t", "c", "low", ["a.x.com", "b.x.com", "y.org"], date(2026, 1, 1))
    assert (tag.corroborations, tag.domains) == (2, ("x.com", "y.org"))


def test_a_claim_is_the_same_despite_spacing_case_and_punctuation() -> None:
    assert hash_statement("The  pool\nleaks.") == hash_statement("the pool leaks")
    assert hash_statement("the pool leaks") != hash_statement("the pool does not leak")


def test_values_are_filled_once_and_missing_ones_are_named() -> None:
    done = fill_procedure("To {a}", ["x {b}", "y {c} {{d}} ${e} {1}"], {"a": "{b}", "b": "B"})
    assert (done.title, done.steps) == ("To {b}", ("x B", "y {c} {{d}} ${e} {1}"))
    assert done.missing == ("c",)


def test_steps_are_parsed_from_a_list_when_none_were_given_or_the_content_changed() -> None:
    content = "To deploy:\n\n1. build\n   with care\n2) push"
    assert parse_procedure(content, {}) == ("To deploy:", ("build\n   with care", "push"))
    assert parse_procedure(content, {"steps": ["old"]})[1] == ("build\n   with care", "push")


LINE = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=40)
TRIMMED = LINE.map(str.strip).filter(bool)


@given(TRIMMED, st.lists(TRIMMED, min_size=1, max_size=8))
def test_steps_are_returned_as_given(title: str, steps: list[str]) -> None:
    assert parse_procedure(render_steps(title, steps), {"steps": steps}) == (title, tuple(steps))
