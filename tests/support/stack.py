"""Runs the four services in one process on real servers, and calls them over HTTP."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import aiohttp
from pydantic import SecretStr

from reverie.bus.streams import ensure_streams
from reverie.contracts.tls import create_tls_context
from reverie.domain.access.principals import KeyRole
from reverie.runtime.http.routes import Route
from reverie.runtime.service import start_service
from reverie.runtime.settings.settings import Settings
from reverie.store.platform.api_keys import (
    DEFAULT_TENANT,
    NewApiKey,
    create_key,
    generate_key_text,
    insert_key,
    normalize_key,
)
from reverie.testing.servers import DatabaseUrls
from reverie_services.dream import app as dream
from reverie_services.ingest import app as ingest
from reverie_services.recall import app as recall
from reverie_services.staleness import app as staleness
from tests.support import tables
from tests.support.background_loop import run_in_thread

T = TypeVar("T")

VAULT_KEY = base64.b64encode(b"o" * 32).decode()
"""The master key of the shared system."""
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.25
"""Seconds between two looks at what a test waits for."""

SETTINGS: dict[str, Any] = {
    "grpc_enabled": False,
    "outbox_sweep_after": 0.5,
    "key_cache_ttl": 0,
    "log_level": "warning",
    "recall_timeout": 12.0,
    "request_queue_timeout": 60.0,
}
"""Those of tests: a busy machine makes no recall late, and refuses none as too many."""


@dataclass(frozen=True)
class Reply:
    """What came back: the status, the decoded body, the headers."""

    status: int
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class Stack:
    """A running system and a key of its own tenant."""

    url: str
    urls: dict[str, str]
    admin_url: str
    http: aiohttp.ClientSession
    key: str
    routes: dict[str, Sequence[Route]]
    settings: Settings
    tenant: str = DEFAULT_TENANT

    def key_of(self, **fields: Any) -> str:
        """Another key: NewKey's fields."""
        return _add_key(self.admin_url, NewApiKey("test", **{"tenant": self.tenant, **fields}))

    def apart(self) -> Stack:
        """The same system to a tenant that nobody else has, for tests that share one."""
        name = f"t{uuid4().hex[:12]}"
        key = _add_key(self.admin_url, NewApiKey("stack", KeyRole.ADMIN, tenant=name))
        return replace(self, key=key, tenant=name)

    def number(self) -> int:
        """The tenant as tables have it."""
        return int(
            tables.value(self.admin_url, "select id from tenant where name = %s", self.tenant)
        )

    async def call(
        self, method: str, path: str, json: Any = None, key: str | None = None, **more: Any
    ) -> Reply:
        """One request through the gateway."""
        headers = {"Authorization": f"Bearer {key or self.key}", **more.pop("headers", {})}
        url = path if path.startswith("http") else self.url + path
        async with self.http.request(method, url, json=json, headers=headers, **more) as answer:
            plain = answer.content_type in {"text/html", "text/javascript", "application/x-ndjson"}
            decoded = answer.text if plain else partial(answer.json, content_type=None)
            body = await decoded() if await answer.read() else None
            return Reply(answer.status, body, dict(answer.headers))

    async def post(self, path: str, json: Any, **more: Any) -> Any:
        """The body of a POST that must succeed."""
        reply = await self.call("POST", path, json, **more)
        assert reply.status < 300, reply
        return reply.body

    async def get(self, path: str, **more: Any) -> Any:
        """The body of a GET that must succeed."""
        reply = await self.call("GET", path, **more)
        assert reply.status < 300, reply
        return reply.body

    async def settled(self, seconds: float = 60.0) -> None:
        """Waits until nothing of the tenant waits for the bus, the slow path, a dream or a mark."""
        tenant = self.number()

        async def is_idle() -> bool:
            return tables.idle(self.admin_url, tenant)

        await eventually(is_idle, seconds)

    async def walked(self, path: str, limit: int = 1, **more: Any) -> list[Any]:
        """The items of a list, page by page."""
        items: list[Any] = []
        params: dict[str, Any] = {"limit": limit}
        while True:
            page = await self.get(path, params=params, **more)
            assert len(page["items"]) <= limit
            items += page["items"]
            if page["next"] is None:
                return items
            params["cursor"] = page["next"]


def _add_key(admin_url: str, new: NewApiKey) -> str:
    """`create_key` on a connection that is open already."""
    with tables.owned(admin_url) as connection:
        return insert_key(connection, normalize_key(new), generate_key_text())


async def eventually(
    look: Callable[[], Awaitable[T]], seconds: float = 60.0, pause: float | None = None
) -> T:
    """What `look` answers once that is true; fails after `seconds`.

    `pause`: seconds between two looks. Unset, they grow the longer it takes: looking, too, takes
    the time of what is waited for.
    """
    wait = pause or FIRST_PAUSE
    async with asyncio.timeout(seconds):
        while not (found := await look()):
            await asyncio.sleep(wait)
            wait = pause or min(1.25 * wait, LONGEST_PAUSE)
        return found


@asynccontextmanager
async def running_stack(
    database: DatabaseUrls, nats_url: str, model_home: Path, **overrides: Any
) -> AsyncIterator[Stack]:
    """All four services on free ports; the model is taken from `model_home`.

    They run in a loop of their own: a test that waits for a lock they hold does not stop them.
    """
    opened = open_stack(database, nats_url, model_home, **overrides)
    async with run_in_thread(opened) as made, _client(overrides.get("ca_file")) as http:
        yield replace(made, http=http)


@asynccontextmanager
async def open_stack(
    database: DatabaseUrls, nats_url: str, model_home: Path, **overrides: Any
) -> AsyncIterator[Stack]:
    """The same, in the loop of the caller."""
    await ensure_streams(nats_url)
    key = create_key(database.admin_url, NewApiKey("stack", KeyRole.ADMIN))
    settings = Settings(
        home=model_home,
        database_url=SecretStr(database.service_url),
        database_readonly_url=SecretStr(database.reader_url),
        nats_url=SecretStr(nats_url),
        **{**SETTINGS, **overrides},
    )
    urls: dict[str, str] = {}
    routes: dict[str, Sequence[Route]] = {}
    async with AsyncExitStack() as stack:
        for name, module in (("staleness", staleness), ("dream", dream), ("ingest", ingest)):
            service = await stack.enter_async_context(module.open_service(settings))
            routes[name] = service.routes
            urls[name] = await stack.enter_async_context(start_service(service, settings))
        gateway = settings.model_copy(update={f"{name}_url": url for name, url in urls.items()})
        service = await stack.enter_async_context(recall.open_service(gateway))
        routes["recall"] = service.routes
        urls["recall"] = await stack.enter_async_context(start_service(service, gateway))
        http = await stack.enter_async_context(_client(settings.ca_file))
        made = Stack(urls["recall"], urls, database.admin_url, http, key, routes, gateway)
        for url in urls.values():
            await eventually(lambda url=url: _ready(http, url))  # type: ignore[misc]
        yield made


def _client(ca_file: Path | None) -> aiohttp.ClientSession:
    trust = aiohttp.TCPConnector(ssl=create_tls_context(ca_file))
    return aiohttp.ClientSession(connector=trust)


async def _ready(http: aiohttp.ClientSession, url: str) -> bool:
    async with http.get(url + "/ready") as answer:
        return answer.status == 200
