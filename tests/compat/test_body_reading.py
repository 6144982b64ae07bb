"""When the compatibility mount reads a body: after the key is checked, and within the timeout."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

import pytest
from multidict import CIMultiDict
from prometheus_client import CollectorRegistry
from yarl import URL

from reverie.domain.access.principals import KeyRole, Principal
from reverie.domain.core.errors import Unauthenticated
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.exchange import IncomingRequest
from reverie.runtime.http.instrumentation import AfterReplyRunner, RequestInstrumentation
from reverie_services.compat.app import mount_compat
from tests.support.stack import Stack

BANK = "/compat/hindsight/v1/default/banks/shop"


async def _authenticate(headers: Mapping[str, str]) -> Principal:
    if headers.get("Authorization") != "Bearer rv_right":
        raise Unauthenticated
    return Principal(1, "one", "key", KeyRole.ADMIN, ("*",), ("*",))


async def answer(
    key: str, chunks: AsyncIterator[bytes], request_timeout: float = 60.0
) -> tuple[int, str]:
    """The status and the code of the problem, of a PUT of a bank."""
    metrics = RequestInstrumentation(CollectorRegistry(), AfterReplyRunner())
    dispatcher = Dispatcher(metrics, None)
    mount = mount_compat(1_000, request_timeout)(dispatcher, _authenticate)
    dispatcher.add_prefix("/compat", mount)
    headers = CIMultiDict({"Authorization": f"Token {key}"})
    request = IncomingRequest("PUT", URL(BANK), headers, chunks, None)
    async with dispatcher.respond(request) as response:
        return response.status, json.loads(response.body).get("code", "")


async def test_a_body_is_read_after_the_key_is_checked() -> None:
    read: list[bytes] = []

    async def send() -> AsyncIterator[bytes]:
        read.append(b"{}")
        yield b"{}"

    assert await answer("rv_wrong", send()) == (401, "unauthenticated")
    assert read == []
    assert await answer("rv_right", send()) == (200, "")
    assert read == [b"{}"]


async def test_a_body_that_does_not_end_has_the_time_of_a_request() -> None:
    async def send() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    assert await answer("rv_right", send(), 0.01) == (503, "unavailable")


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
@pytest.mark.parametrize("path", [BANK, "/compat/mem0/v1/memories", "/compat/other", "/compat"])
async def test_a_wrong_key_is_refused_everywhere(stack: Stack, path: str, method: str) -> None:
    reply = await stack.call(method, path, [1], "rv_wrong")
    assert (reply.status, reply.body["code"]) == (401, "unauthenticated")
