"""What the client asks again, and what it does not: by the method, the status, and how long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from reverie.client import AsyncReverie, Refused
from reverie.contracts.problems import HTTP_STATUS, problem

ANSWER = {"id": "019c2f6e-8d4b-7c31-9a7e-3fa9c1d20b55", "version": 1, "changed": True}
MADE = {**ANSWER, "status": "created"}


@dataclass
class Gateway:
    """Answers what it is told to, then well; and notes what it was asked."""

    url: str = ""
    says: list[tuple[str, str | None]] = field(default_factory=list)
    asked: list[str | None] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.headers.get("Idempotency-Key"))
        if not self.says:
            return web.json_response(MADE if request.method == "POST" else ANSWER)
        code, after = self.says.pop(0)
        body = problem(code, "not now").model_dump(mode="json")
        headers = {"Retry-After": after} if after else {}
        return web.json_response(body, status=HTTP_STATUS[code], headers=headers)


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    made, app = Gateway(), web.Application()
    app.router.add_route("*", "/{any:.*}", made.answer)
    async with TestServer(app) as server:
        made.url = str(server.make_url(""))
        yield made


@pytest.mark.parametrize(
    ("call", "says", "times", "refused"),
    [
        ("remember", [("unavailable", "0"), ("unavailable", None)], 3, None),
        ("remember", [("too_many", "0")], 2, None),
        ("remember", [("too_many", "3600")], 1, "too_many"),
        ("remember", [("conflict", "0")], 2, None),
        ("remember", [("conflict", None)], 1, "conflict"),
        ("edit", [("unavailable", None)], 2, None),
        ("edit", [("too_many", "0")], 2, None),
        ("edit", [("internal", None)], 1, "internal"),
        ("edit", [("unavailable", None)] * 9, 4, "unavailable"),
        ("forget", [("not_found", None)], 1, "not_found"),
    ],
)
async def test_a_call_is_made_again_where_that_is_safe_and_not_for_long(
    gateway: Gateway, call: str, says: Any, times: int, refused: str | None
) -> None:
    gateway.says = list(says)
    given: dict[str, dict[str, Any]] = {
        "remember": {"content": "x"},
        "edit": {"id": "3fa9c1d2", "changes": {"content": "x"}},
        "forget": {"id": "3fa9c1d2"},
    }
    async with AsyncReverie(gateway.url, "key", tries=4) as reverie:
        asking = getattr(reverie, call)(**given[call])
        if refused:
            with pytest.raises(Refused) as caught:
                await asking
            assert caught.value.reason == refused
        else:
            assert (await asking).version == 1
    assert len(gateway.asked) == times
    assert len(set(gateway.asked)) == 1
    assert gateway.asked[0] is not None


async def test_an_answer_that_is_cut_off_is_asked_for_again() -> None:
    asked: list[str | None] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers.get("Idempotency-Key"))
        if len(asked) > 1:
            return web.json_response(MADE)
        cut = web.StreamResponse(headers={"Content-Length": "1000"})
        await cut.prepare(request)
        await cut.write(b'{"id": "019c')
        assert request.transport
        request.transport.close()
        return cut

    app = web.Application()
    app.router.add_route("*", "/{any:.*}", answer)
    async with TestServer(app) as server, AsyncReverie(str(server.make_url("")), "key") as reverie:
        assert (await reverie.remember("x")).version == 1
    assert len(asked) == 2
    assert len(set(asked)) == 1
