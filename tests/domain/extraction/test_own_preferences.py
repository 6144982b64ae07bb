"""What people say of their own way of working is told from what they say of a project."""

from __future__ import annotations

import pytest

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.own_memories import is_own_preference, own_preference_scope

OWN = (
    "I prefer short answers without emojis.",
    "I always want tests before the code, in every project.",
    "I don't like it when you rename my variables. Never do that to me.",
    "My style is early returns, no nested ifs.",
    "Please keep your answers short.",
    "我更喜欢简短的回答。",
)
OF_A_PROJECT = (
    "In this project I prefer tabs over spaces.",
    "We prefer squash merges.",
    "I prefer the cart of shop in Redis.",
    "I'd rather keep this module small.",
    "这个项目我更喜欢用制表符。",
    "Please don't use print.",
)


@pytest.mark.parametrize("text", OWN)
def test_a_preference_of_ones_own_belongs_to_the_user(text: str) -> None:
    assert own_preference_scope(Kind.PREFERENCE, text, (), "shop", "ann") == "user/ann"
    assert own_preference_scope(Kind.PREFERENCE, text, (), "shop", None) is None


@pytest.mark.parametrize("text", OF_A_PROJECT)
def test_a_preference_that_names_the_project_does_not(text: str) -> None:
    assert not is_own_preference(Kind.PREFERENCE, text, (), "shop")


def test_files_rules_and_decisions_are_of_the_project() -> None:
    prefers = "I prefer Redis for the sessions."
    assert is_own_preference(Kind.PREFERENCE, prefers, (), "shop")
    assert not is_own_preference(Kind.PREFERENCE, prefers, ("src/cart.py",), "shop")
    assert not is_own_preference(Kind.DECISION, prefers, (), "shop")
    assert not is_own_preference(Kind.CONVENTION, "Always run the linter.", (), "shop")
    assert is_own_preference(Kind.CONVENTION, "Never apologise to me.", (), "shop")
    assert is_own_preference(Kind.CONVENTION, "Never push without asking me.", (), "shop")
