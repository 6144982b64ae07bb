"""Signing in at an identity provider, scripted on a free port: PKCE, state, nonce, and misuse."""

from __future__ import annotations

import hashlib
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import SecretStr
from yarl import URL

from reverie.bus.streams import ensure_streams
from reverie.domain.core.errors import Misconfigured
from reverie.runtime.service import start_service
from reverie.runtime.settings.settings import Settings
from reverie.store.platform.api_keys import ensure_tenant
from reverie.store.platform.console_sessions import parse_token
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.ingest import app as ingest
from reverie_services.recall import app as recall
from tests.console.pages_over_http import Answer, ConsoleVisitor

ISSUER, CLIENT, AUDIENCE = "https://id.harbour.test/", "console", "reverie"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class ScriptedProvider:
    """A provider: what it was asked for a code, and what it says in its tokens.

    `claims` are put into the token of who signed in, `access` into the other one; `key` signs.
    """

    url: str = ""
    challenge: str = ""
    nonce: str = ""
    used: list[str] = field(default_factory=list)
    claims: dict[str, Any] = field(default_factory=dict)
    access: dict[str, Any] | None = field(default_factory=dict)
    key: Any = KEY
    status: int = 200

    async def publish_keys(self, _: web.Request) -> web.Response:
        """The public key."""
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
        return web.json_response({"keys": [{**public, "kid": "one", "use": "sig"}]})

    async def exchange(self, request: web.Request) -> web.Response:
        """The tokens for a code, which works once and with its verifier."""
        form = await request.post()
        verifier = str(form.get("code_verifier", ""))
        challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode()
        code = str(form.get("code"))
        is_right = challenge.rstrip("=") == self.challenge and code not in self.used
        self.used.append(code)
        if not is_right or form.get("client_secret") != "shared" or self.status != 200:
            return web.json_response({"error": "invalid_grant"}, status=max(400, self.status))
        body = {"id_token": self._sign({"aud": CLIENT, "nonce": self.nonce, **self.claims})}
        if self.access is not None:
            body["access_token"] = self._sign({"aud": AUDIENCE, **self.access})
        return web.json_response(body)

    def _sign(self, claims: dict[str, Any]) -> str:
        said = {
            "iss": ISSUER, "sub": "ann", "exp": time.time() + 300, "tenant": "oidc-harbour",
            "role": "reader", "reads": ["*"], **claims,
        }  # fmt: skip
        return jwt.encode(said, self.key, "RS256", {"kid": "one"})


@asynccontextmanager
async def _serving(provider: ScriptedProvider) -> AsyncIterator[None]:
    app = web.Application()
    app.router.add_get("/jwks", provider.publish_keys)
    app.router.add_post("/token", provider.exchange)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    provider.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield
    await runner.cleanup()


def _settings(database: DatabaseUrls, provider: ScriptedProvider) -> Settings:
    return Settings(
        home=model_home(),
        database_url=SecretStr(database.service_url),
        grpc_enabled=False,
        oidc_issuer=ISSUER,
        oidc_audience=AUDIENCE,
        oidc_jwks_url=f"{provider.url}/jwks",
        oidc_client_id=CLIENT,
        oidc_client_secret=SecretStr("shared"),
        oidc_authorize_url=f"{provider.url}/authorize",
        oidc_token_url=f"{provider.url}/token",
    )


@dataclass
class Person(ConsoleVisitor):
    """A visitor who may go to the provider and come back."""

    provider: ScriptedProvider

    async def leave(self, **params: str) -> URL:
        """Goes to the provider; it remembers what it was told."""
        answer = await self.get("/sign-in/oidc", **params)
        assert answer.status == 303
        page = URL(answer.headers["Location"])
        assert str(page.with_query(None)) == f"{self.provider.url}/authorize"
        self.provider.challenge = page.query["code_challenge"]
        self.provider.nonce = page.query["nonce"]
        return page

    async def come_back(self, page: URL, **changes: str) -> Answer:
        """Comes back with a code, as the provider sends people."""
        params = {"code": f"code{len(self.provider.used)}", "state": page.query["state"]}
        return await self.get("/sign-in/callback", **{**params, **changes})


@asynccontextmanager
async def _visiting(settings: Settings, provider: ScriptedProvider) -> AsyncIterator[Person]:
    """A person in front of a gateway of their own."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with (
        recall.open_service(settings) as service,
        start_service(service, settings) as url,
        aiohttp.ClientSession(cookie_jar=jar) as http,
    ):
        yield Person(url, http, provider)


@pytest.fixture
async def provider(shared_database: DatabaseUrls) -> AsyncIterator[ScriptedProvider]:
    """A provider for the people of a tenant."""
    scripted = ScriptedProvider()
    ensure_tenant(shared_database.admin_url, "oidc-harbour")
    async with _serving(scripted):
        yield scripted


@pytest.fixture
async def person(
    shared_database: DatabaseUrls, provider: ScriptedProvider
) -> AsyncIterator[Person]:
    """A person in front of a gateway that knows the provider. No service is behind it."""
    async with _visiting(_settings(shared_database, provider), provider) as visitor:
        yield visitor


async def test_a_person_signs_in_at_the_provider(person: Person) -> None:
    form = await person.get("/sign-in", next="/console/memories")
    [link] = [each["href"] for each in form.page.find("a") if "sign-in/oidc" in each["href"]]
    page = await person.leave(**URL(link).query)
    asked = page.query
    assert (asked["response_type"], asked["client_id"], asked["scope"]) == (
        "code",
        CLIENT,
        "openid",
    )
    assert asked["redirect_uri"] == f"{person.url}/console/sign-in/callback"
    assert asked["code_challenge_method"] == "S256"
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
    back = await person.come_back(page)
    assert back.status == 200, back.page.text
    [refresh] = back.page.find("meta", **{"http-equiv": "refresh"})
    assert refresh["content"] == "0; url=/console/memories"
    shown = await person.get("/memories")
    assert shown.status == 200
    assert "oidc-harbour" in shown.page.text
    assert parse_token(person.cookie()) is not None, "no token of the provider's"
    assert (await person.come_back(page)).status == 401, "the attempt is over"


async def test_a_readers_token_may_not_see_the_keys(
    shared_database: DatabaseUrls, provider: ScriptedProvider, nats_url: str
) -> None:
    await ensure_streams(nats_url)
    settings = _settings(shared_database, provider)
    settings = settings.model_copy(update={"nats_url": SecretStr(nats_url)})
    async with (
        ingest.open_service(settings) as service,
        start_service(service, settings) as ingest_url,
        # Behind the port that is usual for ingest another system may run.
        _visiting(settings.model_copy(update={"ingest_url": ingest_url}), provider) as person,
    ):
        assert (await person.come_back(await person.leave())).status == 200
        assert (await person.get("/keys")).status == 403
        provider.access = {"aud": AUDIENCE, "role": "admin"}
        assert (await person.come_back(await person.leave())).status == 200
        assert (await person.get("/keys")).status == 200


async def test_without_an_access_token_for_us_the_id_token_counts(person: Person) -> None:
    person.provider.access = None
    person.provider.claims = {"aud": [CLIENT, AUDIENCE]}
    assert (await person.come_back(await person.leave())).status == 200
    assert (await person.get("/memories")).status == 200


@pytest.mark.parametrize(
    ("changes", "script"),
    [
        ({"state": "another"}, {}),
        ({"code": ""}, {}),
        ({"error": "access_denied", "code": ""}, {}),
        ({"iss": "https://evil.example/"}, {}),
        ({}, {"claims": {"nonce": "of another sign-in"}}),
        ({}, {"claims": {"aud": "another client"}}),
        ({}, {"claims": {"aud": [CLIENT, "x"], "azp": "x"}}),
        ({}, {"claims": {"exp": 1}}),
        ({}, {"claims": {"iss": "https://evil.example/"}}),
        ({}, {"key": OTHER_KEY}),
        ({}, {"challenge": "of another verifier"}),
        ({}, {"access": {"tenant": "nobody", "aud": AUDIENCE}}),
        ({}, {"status": 404}),
    ],
)
async def test_an_answer_that_is_not_for_this_attempt_signs_nobody_in(
    person: Person, changes: dict[str, str], script: dict[str, Any]
) -> None:
    page = await person.leave()
    for name, value in script.items():
        setattr(person.provider, name, value)
    answer = await person.come_back(page, **changes)
    assert answer.status == 401
    assert "did not sign you in" in answer.page.text
    assert person.cookie() == ""


async def test_a_code_of_somebody_else_cannot_be_planted(person: Person) -> None:
    page = await person.leave()
    person.http.cookie_jar.clear()
    assert (await person.come_back(page)).status == 401


async def test_the_provider_leads_to_no_other_place(person: Person) -> None:
    for target in ("https://evil.example/", "//evil.example", "/v1/memories"):
        back = await person.come_back(await person.leave(next=target))
        [refresh] = back.page.find("meta", **{"http-equiv": "refresh"})
        assert refresh["content"] == "0; url=/console"


async def test_a_provider_that_fails_is_not_the_persons_fault(person: Person) -> None:
    page = await person.leave()
    person.provider.status = 500
    assert (await person.come_back(page)).status == 503


async def test_a_sign_in_that_lacks_a_part_is_refused_at_the_start(
    shared_database: DatabaseUrls,
) -> None:
    settings = _settings(shared_database, replace(ScriptedProvider(), url="http://127.0.0.1:9"))
    lacking = settings.model_copy(update={"oidc_token_url": None})
    with pytest.raises(Misconfigured, match="oidc_token_url"):
        async with recall.open_service(lacking):
            pass


async def test_without_a_provider_there_is_no_such_page(stack: Any) -> None:
    async with aiohttp.ClientSession() as http:
        visitor = ConsoleVisitor(stack.url, http)
        statuses = [(await visitor.get(f"/sign-in/{name}")).status for name in ("oidc", "callback")]
        form = await visitor.get("/sign-in")
    assert statuses == [404, 404]
    assert [each for each in form.page.find("a") if "oidc" in each["href"]] == []
