"""What the open files call for."""

from __future__ import annotations

import pytest
from tests.unit.test_context import memory

from reverie.domain.kinds import Kind
from reverie.domain.open_files import clean, conventions_for, folders, names, why_near

OPEN = ["/home/ann/shop/src/middleware/auth.ts", "db/seed.sql", "Makefile"]


def test_paths_are_cleaned_and_give_their_names_and_folders() -> None:
    assert clean(["./src//a.ts", "src\\a.ts", "", "/"]) == ["src/a.ts"]
    assert names(OPEN) == ["Makefile", "auth.ts", "seed.sql"]
    assert folders(["shop/src/a.ts", "b.ts"]) == ["shop/src", "src"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("src/middleware/auth.ts", "touches src/middleware/auth.ts"),
        ("src/middleware/cors.ts", "touches src/middleware/cors.ts, beside auth.ts"),
        ("middleware/cors.ts", "touches middleware/cors.ts, beside auth.ts"),
        ("src/middleware/deep/cors.ts", None),
        ("src/auth.ts", None),
        ("README.md", None),
    ],
)
def test_a_file_is_near_where_it_is_open_or_lies_beside_an_open_one(
    path: str, why: str | None
) -> None:
    assert why_near(path, clean(OPEN)) == why


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("No default exports in TypeScript", "for .ts files"),
        ("*.sql files are forward only", "for .sql files"),
        ("What lies in src/middleware/ is pure", "for src/middleware/"),
        ("Use jose in src/middleware/session.ts", "for src/middleware/"),
        ("In Python, no star imports", None),
        ("Keep and/or out of names", None),
        ("Money is kept in cents", None),
    ],
)
def test_a_convention_is_called_for_by_its_language_or_folder(said: str, why: str | None) -> None:
    found = list(conventions_for([memory(1, Kind.CONVENTION, said)], clean(OPEN)))
    assert [one.why for one in found] == ([why] if why else [])
    assert not list(conventions_for([memory(1, Kind.LESSON, said)], clean(OPEN)))
