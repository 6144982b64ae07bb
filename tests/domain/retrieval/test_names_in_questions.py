"""Questions that name an identifier or a project."""

from __future__ import annotations

from uuid import UUID

import pytest

from reverie.domain.retrieval.exact_name_match import (
    contains_name,
    find_name_holders,
    parse_name_query,
)
from reverie.domain.retrieval.question_parsing import extract_project_mentions


def uid(n: int) -> UUID:
    return UUID(int=n)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("mkboltx1x30", ("mkboltx1x30",)),
        ("where do we have mkboltx1x30?", ("mkboltx1x30",)),
        ("find `pool_size` and getUserById", ("poolsize", "getuserbyid")),
        ("src/api/users.ts", ("src/api/users.ts",)),
        ("INC-20418", ("inc-20418",)),
        ("users.ts", ("users.ts",)),
    ],
)
def test_a_question_of_names_only_is_a_name_query(question: str, names: tuple[str, ...]) -> None:
    assert parse_name_query(question) == names


@pytest.mark.parametrize(
    "question",
    [
        "",
        "when did we do it",
        "postgres",
        "mkboltx1x30 is slow",
        "2024-05-01",
        "and/or",
        "第3章内容",
    ],
)
def test_a_question_with_other_words_is_no_name_query(question: str) -> None:
    assert parse_name_query(question) == ()


def test_a_name_matches_as_a_whole_in_any_case() -> None:
    for text in ("set POOL_SIZE to 5", "poolSize", "(pool_size)"):
        assert contains_name(text, ("poolsize",)), text
    for text in ("the pool size", "pool_sizes", "mkboltx1x300", ""):
        assert not contains_name(text, ("poolsize", "mkboltx1x30")), text
    assert not contains_name("anything", ())


def test_the_successor_of_a_name_holder_counts_as_one() -> None:
    texts = {uid(1): "by mkboltx1x30", uid(2): "by another", uid(3): "none"}
    newer = {uid(1): uid(2), uid(2): uid(4), uid(3): uid(5)}
    assert find_name_holders(texts, ("mkboltx1x30",), newer) == {uid(1), uid(2), uid(4)}
    assert find_name_holders(texts, (), newer) == set()


SCOPES = ["global", "project/web-shop", "project/web-shop/*", "project/reverie", "project/*", "*"]


@pytest.mark.parametrize(
    ("text", "less"),
    [
        ("What is the stack of the web-shop?", "What is the stack of the ?"),
        ("How is Redis used in Web Shop's cart?", "How is Redis used in cart?"),
        ("web_shop and the web-shop: which database?", "and the : which database?"),
    ],
)
def test_the_name_of_a_project_is_removed_from_the_question_and_reported(
    text: str, less: str
) -> None:
    assert extract_project_mentions(text, SCOPES) == (less, frozenset({"web-shop"}))


@pytest.mark.parametrize(
    "text",
    [
        "What does reverie listen on?",
        "Where is my-web-shop configured?",
        "the web-shops and web-shop-admin",
        "which shop of the web?",
    ],
)
def test_other_words_are_kept(text: str) -> None:
    assert extract_project_mentions(text, SCOPES) == (text, frozenset())


def test_a_question_of_few_other_words_is_kept_whole() -> None:
    assert extract_project_mentions("web-shop deploy", SCOPES) == (
        "web-shop deploy",
        frozenset({"web-shop"}),
    )
    assert (
        extract_project_mentions("Web-shop database URL", ["project/web-shop"])[0] == "database URL"
    )
    assert extract_project_mentions("Web-shop database URL", ["project/other"]) == (
        "Web-shop database URL",
        frozenset(),
    )
