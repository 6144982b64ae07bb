"""What a question asks beside the names of the projects it is asked in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reverie.domain.places import about
from reverie.domain.question import read
from reverie.domain.worth import IN_PLACE, most

SCOPES = ["global", "project/web-shop", "project/web-shop/*", "project/reverie", "project/*", "*"]


@pytest.mark.parametrize(
    ("text", "less"),
    [
        ("What is the stack of the web-shop?", "What is the stack of the ?"),
        ("How is Redis used in Web Shop's cart?", "How is Redis used in cart?"),
        ("web_shop and the web-shop: which database?", "and the : which database?"),
    ],
)
def test_the_name_of_a_project_asked_in_is_left_out_and_told(text: str, less: str) -> None:
    assert about(text, SCOPES) == (less, frozenset({"web-shop"}))


@pytest.mark.parametrize(
    "text",
    [
        "What does reverie listen on?",
        "Where is my-web-shop configured?",
        "the web-shops and web-shop-admin",
        "which shop of the web?",
    ],
)
def test_other_words_stay(text: str) -> None:
    assert about(text, SCOPES) == (text, frozenset())


def test_a_question_of_little_else_stays_whole() -> None:
    assert about("web-shop deploy", SCOPES) == ("web-shop deploy", frozenset({"web-shop"}))
    assert about("Web-shop database URL", ["project/web-shop"])[0] == "database URL"
    assert about("Web-shop database URL", ["project/other"]) == (
        "Web-shop database URL",
        frozenset(),
    )


def test_what_the_factors_can_come_to_knows_of_places() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    there = most(read("ports", now, frozenset({"web-shop"})))
    assert there == pytest.approx(IN_PLACE * most(read("ports", now)))
