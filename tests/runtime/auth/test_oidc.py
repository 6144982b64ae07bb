"""OIDC tokens: accepted claims, refusals, and an unresponsive provider."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import grpc
import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.reverie_pb2_grpc import ReverieStub
from reverie.domain.core.errors import Unauthenticated, Unavailable
from reverie.embedded.ports import find_free_port
from reverie.runtime.auth import oidc
from reverie.runtime.auth.oidc import OidcProvider, OidcTokenVerifier
from reverie.store.platform.api_keys import ensure_tenant
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.ingest.routes import events
from tests.support.log_capture import capture_logs
from tests.support.stack import Stack, eventually, running_stack

ISSUER, AUDIENCE = "https://id.acme.test/", "reverie"
GOOD = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _token(key: Any = GOOD, how: str = "RS256", kid: str = "one", **claims: Any) -> str:
    told = {
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 60, "tenant": "acme",
        "role": "writer", "reads": ["*"], "writes": "project/shop agent/ann", **claims,
    }  # fmt: skip
    return jwt.encode({k: v for k, v in told.items() if v is not None}, key, how, {"kid": kid})


def _published() -> dict[str, Any]:
    key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(GOOD.public_key()))
    return {**key, "kid": "one", "use": "sig", "alg": "RS256"}


@asynccontextmanager
async def _serving(keys: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/jwks", keys)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/jwks"
    await runner.cleanup()


@pytest.fixture
async def jwks() -> AsyncIterator[str]:
    """Where the provider publishes its key."""

    async def keys(_: web.Request) -> web.Response:
        return web.json_response({"keys": [_published()]})

    async with _serving(keys) as url:
        yield url


@dataclass
class Hanging:
    """A provider that answers with its key once, and then never."""

    asked: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def hangs(self) -> bool:
        return self.asked > 1

    async def keys(self, _: web.Request) -> web.Response:
        self.asked += 1
        if self.asked > 1:
            await self.over.wait()
        return web.json_response({"keys": [_published()]})


async def test_while_the_provider_hangs_cached_keys_serve_and_only_one_request_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(oidc, "_REFRESH_SECONDS", 1e-9)
    monkeypatch.setattr(oidc, "_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(oidc, "_FETCH_SECONDS", 3)
    provider = Hanging()
    async with _serving(provider.keys) as url:
        tokens = OidcTokenVerifier(OidcProvider(ISSUER, AUDIENCE, url), _tenant_of)
        await tokens.verify(_token())
        waits = asyncio.create_task(tokens.verify(_token()))
        await eventually(provider.hangs)
        await asyncio.gather(*(tokens.verify(_token()) for _ in range(40)))
        assert not waits.done()
        await waits
        with pytest.raises(Unavailable):
            await tokens.verify(_token(kid="two"))
        provider.over.set()


async def _tenant_of(name: str) -> int | None:
    return {"acme": 1}.get(name)


async def test_the_log_names_the_claim_that_refused_a_token_and_not_its_value(
    jwks: str,
) -> None:
    tokens = OidcTokenVerifier(OidcProvider(ISSUER, AUDIENCE, jwks), _tenant_of)
    for wrong in (
        {"tenant": "nobody"}, {"tenant": None}, {"role": "emperor"}, {"reads": 5},
        {"writes": "every where"}, {"project": " "},
    ):  # fmt: skip
        with capture_logs() as lines, pytest.raises(Unauthenticated):
            await tokens.verify(_token(**wrong))
        assert [(line["event"], line["claim"]) for line in lines] == [("token_rejected", *wrong)]
        assert not {"nobody", "emperor", "every"} & set(str(lines).replace("'", " ").split())


async def test_a_token_grants_what_its_claims_say_until_it_expires_and_a_forged_one_nothing(
    database: DatabaseUrls, nats_url: str, jwks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(oidc, "_LEEWAY", 0.0)
    ensure_tenant(database.admin_url, "acme")
    port = find_free_port()
    settings: dict[str, Any] = {"oidc_issuer": ISSUER, "oidc_audience": AUDIENCE}
    settings |= {"oidc_jwks_url": jwks}
    settings |= {"grpc_enabled": True, "grpc_port": port}
    async with running_stack(database, nats_url, model_home(), **settings) as stack:
        body = {"content": "Carts are kept in Redis", "scope": "project/shop"}
        made = await stack.post("/v1/remember", body, key=_token())
        path = f"/v1/memories/{made['id']}"
        assert (await stack.get(path, key=_token(role=None)))["content"] == body["content"]
        # Another tenant's key sees nothing of it, and the token nothing of that tenant.
        assert (await stack.call("GET", path)).status == 404
        for token, status in (
            (_token(role="reader"), 403),
            (_token(writes="project/other"), 403),
            (_token(reads=None, writes=None), 403),
            (_token(OTHER), 401),
            (_token(kid="two"), 401),
            (_token(exp=time.time() - 3600), 401),
            (_token(exp=None), 401),
            (_token(aud="another"), 401),
            (_token(iss="https://evil.test/"), 401),
            (_token(sub=None), 401),
            (_token(tenant="nobody"), 401),
            (_token(tenant=None), 401),
            (_token(role="emperor"), 401),
            (_token(reads=["every where"]), 401),
            (_token(reads=5), 401),
            (_token("s" * 40, "HS256"), 401),
            (_token(None, "none"), 401),
            (_token(ec.generate_private_key(ec.SECP256R1()), "ES256"), 401),
            ("ey.not.one", 401),
        ):
            answer = await stack.call("POST", "/v1/remember", body, token)
            assert answer.status == status, jwt.decode(token, options={"verify_signature": False})
            assert token not in json.dumps(answer.body)
        await _watch_until_expiry(stack, port)


async def _watch_until_expiry(stack: Stack, port: int) -> None:
    """Streams of events over HTTP and gRPC end with their token."""
    token = _token(exp=time.time() + 4)
    headers = {"Authorization": f"Bearer {token}"}

    async def read_stream() -> bytes:
        async with stack.http.get(f"{stack.url}/v1/events", headers=headers) as answer:
            assert answer.status == 200
            return await answer.content.read()

    async def watch_by_grpc() -> int:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            metadata = (("authorization", f"Bearer {token}"),)
            stub: Any = ReverieStub(channel)
            messages = stub.WatchMemories(pb.WatchRequest(), metadata=metadata)
            count = 0
            with suppress(grpc.aio.AioRpcError):
                async for _ in messages:
                    count += 1
            return count

    started = time.monotonic()
    async with asyncio.timeout(60):
        stream, messages = await asyncio.gather(read_stream(), watch_by_grpc())
    # Several heartbeats came, and the end only with the expiry.
    assert time.monotonic() - started > 2
    assert stream.count(b"\n\n") >= 3
    assert messages >= 3
