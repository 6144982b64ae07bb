"""Questions that ask by a name alone."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import pytest

from reverie.domain.named import holders, holds_one, named_alone


def uid(n: int) -> UUID:
    return UUID(int=n)


class _Text(NamedTuple):
    content: str


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
def test_a_question_of_nothing_but_names_asks_by_them(
    question: str, names: tuple[str, ...]
) -> None:
    assert named_alone(question) == names


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
def test_words_of_any_other_sort_ask_for_more_than_a_name(question: str) -> None:
    assert named_alone(question) == ()


def test_a_name_is_held_as_a_whole_and_in_whatever_case() -> None:
    for text in ("set POOL_SIZE to 5", "poolSize", "(pool_size)"):
        assert holds_one(text, ("poolsize",)), text
    for text in ("the pool size", "pool_sizes", "mkboltx1x300", ""):
        assert not holds_one(text, ("poolsize", "mkboltx1x30")), text
    assert not holds_one("anything", ())


def test_what_took_the_place_of_a_holder_counts_as_one() -> None:
    texts = {uid(1): _Text("by mkboltx1x30"), uid(2): _Text("by another"), uid(3): _Text("none")}
    newer = {uid(1): uid(2), uid(2): uid(4), uid(3): uid(5)}
    assert holders(texts, ("mkboltx1x30",), newer) == {uid(1), uid(2), uid(4)}
    assert holders(texts, (), newer) == set()
