"""Comparing all vectors of a tenant, or walking the index that it shares with others."""

from __future__ import annotations

import pytest

from reverie.store.counts import EXACT_UP_TO, Vectors


@pytest.mark.parametrize(
    ("own", "around", "exact"),
    [
        (0, 0, True),
        (EXACT_UP_TO, EXACT_UP_TO, True),
        (EXACT_UP_TO + 1, EXACT_UP_TO, False),
        (EXACT_UP_TO + 1, -1, False),
        (EXACT_UP_TO + 1, 150_000, True),
        (100_000, 150_000, False),
        (100_000, 5_000_000, True),
        (200_000, 9_000_000, False),
    ],
)
def test_the_index_is_walked_where_the_tenant_is_much_of_what_it_meets(
    own: int, around: float, exact: bool
) -> None:
    assert Vectors(own, around).exact is exact
