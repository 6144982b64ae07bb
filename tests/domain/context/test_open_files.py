"""Open files bring the conventions and memories that apply to them."""

from __future__ import annotations

import pytest

from reverie.domain.context.open_files import (
    explain_relevance,
    find_file_conventions,
    list_file_names,
    list_folder_suffixes,
    normalize_paths,
)
from reverie.domain.core.kinds import Kind
from tests.domain.context.test_context_block import memory

OPEN = ["/home/ann/shop/src/middleware/auth.ts", "db/seed.sql", "Makefile"]


def test_paths_are_normalized_and_yield_names_and_folders() -> None:
    assert normalize_paths(["./src//a.ts", "src\\a.ts", "", "/"]) == ["src/a.ts"]
    assert list_file_names(OPEN) == ["Makefile", "auth.ts", "seed.sql"]
    assert list_folder_suffixes(["shop/src/a.ts", "b.ts"]) == ["shop/src", "src"]


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
def test_a_file_is_near_if_it_is_open_or_beside_an_open_one(path: str, why: str | None) -> None:
    assert explain_relevance(path, normalize_paths(OPEN)) == why


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
def test_a_convention_applies_by_language_or_folder(said: str, why: str | None) -> None:
    found = list(find_file_conventions([memory(1, Kind.CONVENTION, said)], normalize_paths(OPEN)))
    assert [one.why for one in found] == ([why] if why else [])
    assert not list(find_file_conventions([memory(1, Kind.LESSON, said)], normalize_paths(OPEN)))
