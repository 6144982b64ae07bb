"""A small service with every kind of route, in the test's process or in its own."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import aiohttp
from pydantic import AwareDatetime, Field

from reverie.contracts.base import NonBlankStr, PageResponse, RequestBody, ResponseBody, Tag
from reverie.domain.access.principals import KeyRole
from reverie.domain.core.errors import InvalidInput, Misconfigured, NotFound, PayloadTooLarge
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.pagination import CursorPosition, PageQuery, cut_page, decode_cursor
from reverie.runtime.http.reverse_proxy import ProxyRoute
from reverie.runtime.http.routes import Route
from reverie.runtime.service import Service, ServiceLaunch, serve, start_service
from reverie.runtime.settings.loading import load_settings
from reverie.runtime.settings.settings import Settings
from tests.support.in_memory_runtime import (
    InMemoryCounts,
    InMemoryIdempotency,
    InMemoryKeys,
    build_principal,
)

KEY = "key-of-the-writer"
OTHER_KEY = "key-of-another-tenant"
ADMIN_KEY = "key-of-the-admin"
NARROW_KEY = "key-of-a-narrow-reader"
SECRET = "hunter2-must-never-show"
BODY_LIMIT = 4096
GOOD = {"text": "hello"}


class Inner(RequestBody):
    level: int = Field(ge=0, le=9)


class Note(RequestBody):
    text: NonBlankStr
    count: int = 1
    tags: list[Tag] = Field(default_factory=list, max_length=3)
    at: AwareDatetime | None = None
    ref: UUID | None = None
    inner: Inner | None = None
    meta: dict[str, Any] = Field(default_factory=dict)


class Noted(ResponseBody):
    number: int
    text: str
    tenant: str


class Notes(PageResponse):
    items: list[int]


class NotesQuery(PageQuery):
    tag: list[str] = Field(default_factory=list)
    deep: bool = False


class Optional(RequestBody):
    summary: NonBlankStr | None = None


class At(CursorPosition):
    number: int


class Sample:
    """The state behind the routes; tests look into it and hold requests with its events."""

    def __init__(self) -> None:
        self.keys = InMemoryKeys()
        self.counts = InMemoryCounts()
        self.idempotency = InMemoryIdempotency()
        self.notes: list[str] = []
        self.entered = asyncio.Event()
        self.go = asyncio.Event()
        self.did: list[str] = []
        self.keys.add(KEY, build_principal(1))
        self.keys.add(OTHER_KEY, build_principal(2))
        self.keys.add(ADMIN_KEY, build_principal(1, KeyRole.ADMIN))
        self.keys.add(NARROW_KEY, build_principal(1, KeyRole.READER, ("project/shop",)))

    def service(self, **more: Any) -> Service:
        """The service; `more` replaces or adds fields."""
        fields: dict[str, Any] = {
            "name": "ingest",
            "port": 0,
            "keys": self.keys,
            "quotas": self.counts,
            "routes": self.routes(),
            "idempotency": self.idempotency,
        }
        return Service(**{**fields, **more})

    def routes(self) -> list[Route]:
        return [
            Route("POST", "/v1/notes", self.note, body=Note, response=Noted, status=201),
            Route("GET", "/v1/notes", self.list, query=NotesQuery, response=Notes),
            Route("GET", "/v1/notes/{id}", self.get, response=Noted),
            Route("POST", "/v1/optional", self.optional, body=Optional, response=Noted),
            Route("POST", "/v1/held", self.held, body=Note, response=Noted),
            Route("POST", "/v1/later", self.later, body=Note, response=Noted),
            Route("GET", "/v1/empty", self.empty),
            Route("GET", "/v1/scope", self.scope),
            Route("GET", "/v1/broken", self.broken),
            Route("GET", "/v1/misconfigured", self.misconfigured),
            Route("GET", "/v1/stuck", self.stuck),
            Route("GET", "/v1/big", self.big),
        ]

    async def note(self, call: Call[Note, None]) -> Noted:
        self.notes.append(call.body.text)
        return self._noted(call, call.body.text)

    async def list(self, call: Call[None, NotesQuery]) -> Notes:
        start = decode_cursor(call.query.cursor, At)
        rows = list(range(start.number + 1 if start else 0, 10))[: call.query.limit + 1]
        items, following = cut_page(rows, call.query.limit, lambda number: At(number=number))
        return Notes(items=items, next=following)

    async def get(self, call: Call[None, None]) -> Noted:
        try:
            note = UUID(call.path["id"])
        except ValueError:
            raise InvalidInput("id", "is not a UUID") from None
        raise NotFound("note", str(note))

    async def optional(self, call: Call[Optional, None]) -> Noted:
        return self._noted(call, call.body.summary or "none")

    async def held(self, call: Call[Note, None]) -> Noted:
        self.entered.set()
        await self.go.wait()
        self.notes.append(call.body.text)
        return self._noted(call, call.body.text)

    async def later(self, call: Call[Note, None]) -> Noted:
        async def work() -> None:
            self.entered.set()
            await self.go.wait()
            self.did.append(call.body.text)

        call.run_after_reply(work)
        return self._noted(call, call.body.text)

    async def empty(self, _: Call[None, None]) -> Reply:
        return Reply(204)

    async def scope(self, call: Call[None, None]) -> Reply:
        call.principal.check_read(["project/other"])
        return Reply(204)

    async def broken(self, _: Call[None, None]) -> Reply:
        raise RuntimeError(f"postgres://u:{SECRET}@h/d refused Bearer {SECRET}")

    async def misconfigured(self, _: Call[None, None]) -> Reply:
        raise Misconfigured("database_url", SECRET)

    async def stuck(self, _: Call[None, None]) -> Reply:
        await asyncio.Event().wait()
        return Reply(204)

    async def big(self, _: Call[None, None]) -> Reply:
        raise PayloadTooLarge("content", 70_000, 65_536, "content_limit")

    def _noted(self, call: Call[Any, Any], text: str) -> Noted:
        return Noted(number=len(self.notes), text=text, tenant=call.principal.tenant_name)


def gateway(sample: Sample, upstream: str, *prefixes: str, **more: Any) -> Service:
    """A gateway that forwards the prefixes to the sample at `upstream`."""
    fields: dict[str, Any] = {
        "name": "recall",
        "port": 0,
        "keys": sample.keys,
        "quotas": sample.counts,
        "proxy_routes": [
            ProxyRoute(prefix, "ingest", upstream)
            for prefix in prefixes or ("/v1/notes", "/v1/big")
        ],
    }
    return Service(**{**fields, **more})


@asynccontextmanager
async def sample_client(sample: Sample) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the running sample, with the writer's key and tight limits."""
    settings = Settings(body_limit=BODY_LIMIT, request_timeout=2.0, key_cache_ttl=60)
    async with (
        start_service(sample.service(), settings) as url,
        aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {KEY}"}) as session,
    ):
        yield session


async def problem_of(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The problem document of an answer, checked for what all of them have."""
    assert response.content_type == "application/problem+json"
    document: dict[str, Any] = json.loads(await response.read())
    assert document["status"] == response.status
    assert document["type"] == f"urn:reverie:problem:{document['code']}"
    assert document["trace_id"] == response.headers["X-Trace-Id"]
    assert "Traceback" not in document["detail"]
    return document


@asynccontextmanager
async def open_sample(settings: Settings) -> AsyncIterator[Service]:
    """The sample as a process: tells on standard output what its life cycle does."""
    sample = Sample()

    async def work() -> None:
        await sample.entered.wait()
        print("entered", flush=True)
        await asyncio.Event().wait()

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, sample.go.set)

    print("opened", flush=True)
    try:
        yield sample.service(port=settings.ingest_port, background=[work])
    finally:
        print(f"closed with {len(sample.notes)} notes and {len(sample.did)} done", flush=True)


if __name__ == "__main__":
    sys.exit(serve([ServiceLaunch("ingest", open_sample, load_settings())], "ingest"))
