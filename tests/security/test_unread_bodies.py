"""No body is read before its sender is known, and none is kept without a bound."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import hmac
import json
import zlib
from collections.abc import AsyncIterator
from itertools import cycle
from typing import Any

import pytest

from reverie.contracts.operations import PATH_VARIABLE
from reverie.domain.core.errors import Overloaded
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.staleness.webhooks.signatures import UnverifiedBodies
from tests.support.raw_http import answer_to
from tests.support.stack import Stack, running_stack

VAULT_KEY = base64.b64encode(b"o" * 32).decode()
SECRET = "walnut-tulip-harbour-nine"
FRAMINGS = [
    "Content-Length: 40\r\n",
    "Content-Length: 900000\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Content-Length: 900000\r\nContent-Encoding: gzip\r\n",
    "Content-Length: 900000\r\nExpect: 100-continue\r\n",
]
"""Headers of bodies of which nothing is sent."""


@pytest.fixture
async def hooked(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    """A system that can keep the secrets of webhooks, with two of them."""
    async with running_stack(database, nats_url, model_home(), vault_key=VAULT_KEY) as stack:
        for forge in ("github", "gitlab"):
            path = f"/v1/git/webhooks/{forge}/shop"
            made = await stack.call("PUT", path, {"secret": SECRET})
            assert made.status == 200, made
        yield stack


def _calls(stack: Stack, service: str) -> list[tuple[str, str]]:
    """Every call of a service that needs a key."""
    return [
        (route.method, PATH_VARIABLE.sub("x", route.path))
        for route in stack.routes[service]
        if not route.public
    ]


async def test_a_call_with_a_wrong_key_is_refused_before_its_body(stack: Stack) -> None:
    """Each call without a key and with a wrong one, the framings in turn."""
    calls = {service: _calls(stack, service) for service in stack.routes}
    targets = [(stack.urls[service], call) for service in calls for call in calls[service]]
    targets += [(stack.url, call) for service in calls for call in calls[service]]
    assert len(targets) > 150
    for key in ("", "Authorization: Bearer rv_wrong\r\n"):
        framed = zip(targets, cycle(FRAMINGS), strict=False)
        answers = await asyncio.gather(
            *(answer_to(url, *call, key + framing) for (url, call), framing in framed)
        )
        wrong = [
            (call, first, document)
            for (_, call), (first, document) in zip(targets, answers, strict=True)
            if document.get("code") != "unauthenticated"
        ]
        assert wrong == []


async def test_a_body_to_a_public_page_is_not_read(stack: Stack) -> None:
    for url in stack.urls.values():
        for path in ("/health", "/ready", "/metrics"):
            first, _ = await answer_to(url, "GET", path, "Content-Length: 900000\r\n")
            assert first == b"HTTP/1.1 200 OK", (url, path, first)


async def test_an_announced_body_is_asked_for_once_the_key_is_checked(stack: Stack) -> None:
    body = json.dumps({"content": "The crane lifts on Fridays."}).encode()
    head = f"Authorization: Bearer {stack.key}\r\nContent-Length: {len(body)}\r\n"
    for url in (stack.url, stack.urls["ingest"]):
        expecting = head + "Expect: 100-continue\r\n"
        first, _ = await answer_to(url, "POST", "/v1/remember", expecting)
        assert first == b"HTTP/1.1 100 Continue"


async def test_an_unknown_expectation_is_no_error(stack: Stack) -> None:
    first, _ = await answer_to(stack.url, "GET", "/health", "Expect: 200-maybe\r\n")
    assert first == b"HTTP/1.1 200 OK"
    expecting = "Expect: 200-maybe\r\n"
    _, document = await answer_to(stack.url, "GET", "/v1/memories", expecting)
    assert document["code"] == "unauthenticated"


async def test_a_delivery_without_a_signature_is_refused_before_its_body(hooked: Stack) -> None:
    for framing in FRAMINGS:
        for base in (hooked.url, hooked.urls["staleness"]):
            for path, headers in (
                ("/v1/git/github/default/shop", ""),
                ("/v1/git/github/default/shop", "X-Hub-Signature-256: sha256=1\r\n"),
                ("/v1/git/github/nobody/shop", ""),
                ("/v1/git/gitlab/default/shop", ""),
                ("/v1/git/gitlab/default/shop", "X-Gitlab-Token: wrong\r\n"),
                ("/v1/git/gitlab/nobody/shop", f"X-Gitlab-Token: {SECRET}\r\n"),
                ("/v1/git/gitlab/default/shop", "webhook-signature: v1,x\r\n"),
            ):
                _, document = await answer_to(base, "POST", path, headers + framing)
                assert document["code"] == "unauthenticated", (path, headers, framing, document)


async def test_a_compressed_delivery_counts_unpacked_and_its_signature_is_of_the_whole(
    hooked: Stack,
) -> None:
    plain = json.dumps({"zen": "x" * 300_000}).encode()
    signature = hmac.new(SECRET.encode(), plain, hashlib.sha256).hexdigest()
    headers = {
        "X-GitHub-Event": "ping",
        "X-Hub-Signature-256": f"sha256={signature}",
        "Content-Encoding": "gzip",
        "Content-Type": "application/json",
    }
    path = "/v1/git/github/default/shop"
    sent: dict[str, Any] = {"data": gzip.compress(plain), "headers": headers}
    assert (await hooked.call("POST", path, **sent)).status == 202
    unknown = await hooked.call("POST", "/v1/git/github/nobody/shop", **sent)
    assert unknown.status == 401
    bomb = {**sent, "data": gzip.compress(bytes(60_000_000))}
    refused = await hooked.call("POST", path, **bomb)
    assert (refused.status, refused.body["code"]) == (413, "too_large")
    # A bomb to an address that does not exist is told in no other words.
    assert (await hooked.call("POST", "/v1/git/github/nobody/shop", **bomb)).status == 413


async def test_unverified_bodies_of_one_address_leave_room_for_others() -> None:
    bodies = UnverifiedBodies(100, 40)
    held = asyncio.Event()

    async def slow(size: int) -> Any:
        yield b"x" * size
        await held.wait()

    first = asyncio.create_task(bodies.collect("a", slow(30)))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await bodies.collect("a", slow(20))
    second, third = (asyncio.create_task(bodies.collect(name, slow(30))) for name in "bc")
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await bodies.collect("d", slow(20))
    held.set()
    assert [len(await task) for task in (first, second, third)] == [30, 30, 30]
    assert len(await bodies.collect("a", slow(40))) == 40


async def test_a_compressed_body_is_read_in_every_common_form(stack: Stack) -> None:
    body = json.dumps({"content": "The lift is serviced in May. " * 900}).encode()
    for wbits, encoding in ((31, "gzip"), (15, "deflate"), (-15, "deflate")):
        packer = zlib.compressobj(wbits=wbits)
        packed = packer.compress(body) + packer.flush()
        head = {"Content-Encoding": encoding, "Content-Type": "application/json"}
        sent = await stack.call("POST", "/v1/remember", data=packed, headers=head)
        assert sent.status in {200, 201}, sent
        for broken in (packed[:-20], packed + b"more", b"no" + packed):
            refused = await stack.call("POST", "/v1/remember", data=broken, headers=head)
            assert (refused.status, refused.body["code"]) == (400, "malformed"), refused
