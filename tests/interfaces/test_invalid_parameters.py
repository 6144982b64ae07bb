"""Wrong query parameters and altered cursors are named in the error."""

from __future__ import annotations

import base64
import json
from itertools import product

from tests.interfaces.invalid_input import MISSING, Place, names, problem


def _cursor(position: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


LISTS = ("/v1/memories", "/v1/dream", "/v1/dreams", "/v1/stale", "/v1/sessions/$session/turns")


CURSORS = (
    "e30", _cursor({"id": "x"}), _cursor({"ordinal": "1"}), _cursor({"ordinal": 2**31}),
    _cursor({"ordinal": -(2**70)}), _cursor({"id": MISSING, "tenant": 2}), "A" * 1001,
)  # fmt: skip


async def test_a_modified_cursor_is_refused(place: Place) -> None:
    async with place.unchanged():
        for path, cursor in product(LISTS, CURSORS):
            document = problem(*await place.send("GET", f"{path}?cursor={cursor}"))
            assert (document["status"], document["field"]) == (422, "cursor"), (path, cursor)


WRONG_QUERIES: list[tuple[str, str]] = [
    *((f"{path}?limit=201", "limit") for path in LISTS),
    *((f"{path}?zzz=1", "zzz") for path in LISTS),
    ("/v1/memories?scope=nowhere", "scope"),
    ("/v1/memories?scope=global&scope=global", "scope"),
    ("/v1/memories?scope=project/a%00", "scope"),
    ("/v1/memories?kind=rumour", "kind"),
    ("/v1/memories?status=deleted", "status"),
    ("/v1/memories?status=gone", "status"),
    ("/v1/memories?session=x", "session"),
    ("/v1/memories?tag=%00", "tag"),
    ("/v1/memories/nope", "id"),
    ("/v1/memories/..%2f..%2fetc", "id"),
    ("/v1/memories/$memory?deep=1", "deep"),
    ("/v1/context?session=x", "session"),
    ("/v1/context?scopes=nowhere", "scopes"),
    ("/v1/context?project=%20", "project"),
    ("/v1/context?project=a&scopes=global", "scopes"),
    ("/v1/context?project=a&session=$session", "session"),
    ("/v1/context?budget_tokens=1", "budget_tokens"),
    ("/v1/dreams?scope=x", "scope"),
    ("/v1/stale?scope=x", "scope"),
    ("/v1/stale?project=%20", "project"),
]


async def test_an_invalid_parameter_is_named(place: Place) -> None:
    async with place.unchanged():
        for path, field in WRONG_QUERIES:
            document = problem(*await place.send("GET", path))
            assert document["status"] == 422, path
            assert names(document, field), (path, document)
