"""The client works with a gateway of an earlier version: what it answered then can be read now.

`tests/older/answers.json` holds an answer of each call as version 0.1.0 gave it.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.doors.case import Case
from tests.doors.table import CASES

from reverie.client import AsyncReverie, Refused
from reverie.contracts.problems import problem

ANSWERS = json.loads((Path(__file__).parents[1] / "older" / "answers.json").read_text())
STREAMS = {"watch_memories", "export", "import"}
KNOWN_THEN = [
    case
    for case in CASES
    if case.operation not in STREAMS
    and f"{case.call.method} {case.call.path.replace('{kind}', 'github')}" in ANSWERS
]
_DUMMIES: dict[str, Any] = {
    "int": 1,
    "date": date(2026, 1, 2),
    "datetime": datetime(2026, 1, 2, tzinfo=UTC),
    "Sequence[Mapping[str, Any]]": [{}],
    "Mapping[str, Any]": {},
    "Literal['github', 'gitlab']": "github",
}


@pytest.fixture
async def older() -> AsyncIterator[str]:
    """A gateway that answers as the one of 0.1.0 did, and knows the routes that it had."""
    app = web.Application()
    for name, told in ANSWERS.items():
        method, path = name.split(" ")
        if method != "HEAD":
            app.router.add_route(method, path, _telling(told))
    app.router.add_route("*", "/{rest:.*}", _no_route)
    async with TestServer(app) as server:
        yield str(server.make_url(""))


def _telling(told: dict[str, Any]) -> Callable[[web.Request], Any]:
    async def answer(_: web.Request) -> web.Response:
        body = told["body"]
        if isinstance(body, dict) and "next" in body:
            body = {**body, "next": None}
        return web.json_response(body, status=told["status"])

    return answer


async def _no_route(request: web.Request) -> web.Response:
    told = problem("not_found", f"no route {request.path} that this key may read")
    return web.json_response(told.model_dump(mode="json"), status=404)


@pytest.mark.parametrize("case", KNOWN_THEN, ids=lambda case: case.operation)
async def test_an_answer_of_then_is_read_now(older: str, case: Case) -> None:
    async with AsyncReverie(older, "key", tries=1) as reverie:
        call = getattr(reverie, case.client)
        found = call(**_dummies(call))
        if isinstance(found, AsyncIterator):
            assert [one async for one in found]
        else:
            assert await found is not None


def _dummies(call: Any) -> dict[str, Any]:
    """Something for each argument that must be given."""
    return {
        name: next((one for kind, one in _DUMMIES.items() if _fits(kind, given.annotation)), "x")
        for name, given in inspect.signature(call).parameters.items()
        if given.default is inspect.Parameter.empty
        and given.kind is not inspect.Parameter.VAR_KEYWORD
    }


def _fits(kind: str, annotation: str) -> bool:
    return annotation.replace('"', "'").split(" | ")[-1] == kind or annotation == kind


async def test_a_call_that_an_older_gateway_does_not_know_says_so(older: str) -> None:
    async with AsyncReverie(older, "key", tries=1) as reverie:
        with pytest.raises(Refused, match=r"has no GET /v1/skills: it may be older"):
            [one async for one in reverie.skills()]


def test_most_operations_are_known_since_then() -> None:
    assert len(KNOWN_THEN) > 60
    assert {re.sub(r"[^A-Z]", "", name.split(" ")[0]) for name in ANSWERS} >= {"GET", "POST"}
