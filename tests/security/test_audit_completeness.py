"""No caller can keep entries out of the audit log, neither its own nor those of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from unittest.mock import AsyncMock
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from multidict import CIMultiDict
from yarl import URL

from reverie.domain.access.audit import AuditEntry
from reverie.domain.core.errors import Unavailable
from reverie.runtime.http import audit
from reverie.runtime.http.audit import Auditor
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.exchange import IncomingRequest, OutgoingResponse
from reverie.runtime.http.instrumentation import AfterReplyRunner, RequestInstrumentation
from reverie.runtime.http.routes import Route
from reverie.runtime.observability.metrics import create_registry
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.in_memory_runtime import build_principal
from tests.support.log_capture import capture_logs
from tests.support.raw_http import answer_to
from tests.support.stack import Stack, eventually, running_stack
from tests.support.tables import rows, value


@pytest.fixture
async def audited(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    async with running_stack(database, nats_url, model_home(), audit_mode="all") as stack:
        yield stack


HOSTILE = [
    ("/v1/memories/%00", ""),
    ("/v1/memories/%FF%ED%A0%80", ""),
    ("/v1/memories/" + "x" * 4000, ""),
    ("/v1/memories/%5Cu0000", ""),
    ("/v1/memories", "User-Agent: \xff\xfe\r\n"),
    ("/v1/memories", "User-Agent: \ud83d\r\n"),
    ("/v1/memories", "User-Agent: " + "y" * 4000 + "\r\n"),
    ("/v1/memories?key=%00", ""),
]


async def test_every_read_is_recorded_whatever_another_one_names(audited: Stack) -> None:
    key = f"Authorization: Bearer {audited.key}\r\n"
    calls = [
        (path, key + extra.encode("utf-8", "surrogatepass").decode("latin-1"))
        for path, extra in HOSTILE
    ]
    calls += [("/v1/memories", key)] * 20
    await asyncio.gather(*(answer_to(audited.url, "GET", path, head) for path, head in calls))

    async def recorded() -> bool:
        return bool(value(audited.admin_url, "select count(*) from audit") == len(calls))

    await eventually(recorded)
    [clean] = rows(audited.admin_url, "select subjects from audit where subjects <> '{}'"
                   " and subjects[1] like %s", "\N{REPLACEMENT CHARACTER}")  # fmt: skip
    assert clean == (["\N{REPLACEMENT CHARACTER}"],)


async def test_a_sign_in_to_the_console_is_recorded_as_a_change(audited: Stack) -> None:
    form = {"key": audited.key}
    async with audited.http.post(f"{audited.url}/console/sign-in", data=form) as answer:
        assert answer.status == 200
    found = rows(
        audited.admin_url,
        "select status, changes from audit where action = 'POST /console/sign-in'",
    )
    assert found == [(303, True)]


async def test_a_change_is_recorded_although_its_client_left(audited: Stack) -> None:
    parts = urlsplit(audited.urls["ingest"])
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = "POST /v1/import?scope=global HTTP/1.1\r\nHost: localhost\r\n"
    head += "Content-Type: text/markdown\r\nExpect: 100-continue\r\n"
    head += f"Authorization: Bearer {audited.key}\r\nTransfer-Encoding: chunked\r\n\r\n"
    writer.write(head.encode())
    # Now the key is known, and the body is read.
    assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
    writer.write(b"11\r\n# a\n\nwren sings\n\n\r\n")
    await writer.drain()
    writer.transport.abort()

    async def recorded() -> bool:
        return bool(
            rows(audited.admin_url, "select action from audit where action = 'POST /v1/import'")
        )

    assert await eventually(recorded)


async def test_the_deletion_of_a_tenant_drops_no_entry(audited: Stack) -> None:
    doomed = audited.apart()
    with capture_logs() as logs:
        gone = await doomed.call("DELETE", "/v1/admin/tenant", {"confirm": doomed.tenant})
        assert gone.status == 200, gone
    events = {line["event"] for line in logs}
    assert "audit_ended_with_tenant" in events
    assert "audit_entry_dropped" not in events


async def test_entries_that_cannot_be_stored_now_are_stored_later() -> None:
    store = AsyncMock()
    store.add.side_effect = [Unavailable("Postgres", "x"), None]
    auditor, request = _auditor(store)
    await auditor.record(request, OutgoingResponse(200, CIMultiDict()))
    running = asyncio.create_task(auditor.run_writer())

    async def stored() -> bool:
        return bool(store.add.await_count == 2)

    await eventually(stored)
    running.cancel()
    first, second = store.add.await_args_list
    assert list(first.args[1]) == list(second.args[1])


async def test_one_entry_that_is_refused_takes_no_other_along() -> None:
    kept: list[str] = []

    async def add(_: int, entries: list[AuditEntry]) -> None:
        if any("bad" in entry.client for entry in entries):
            raise ValueError
        kept.extend(entry.client for entry in entries)

    store = AsyncMock()
    store.add = add
    auditor, request = _auditor(store, "GET")
    for client in ("a", "bad", "b"):
        request.headers = CIMultiDict({"User-Agent": client})
        await auditor.record(request, OutgoingResponse(200, CIMultiDict()))
    running = asyncio.create_task(auditor.run_writer())

    async def stored() -> bool:
        return kept == ["a", "b"]

    await eventually(stored)
    running.cancel()


async def test_a_flood_of_reads_crowds_out_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MAX_PENDING_ENTRIES", 3)
    store = AsyncMock()
    auditor, request = _auditor(store, "GET")
    for _ in range(5):
        await auditor.record(request, OutgoingResponse(200, CIMultiDict()))
    assert store.add.await_count == 2


async def test_an_interrupted_call_is_recorded() -> None:
    store = AsyncMock()
    auditor, request = _auditor(store)
    registry = create_registry()
    dispatcher = Dispatcher(RequestInstrumentation(registry, AfterReplyRunner()), auditor)
    started = asyncio.Event()

    async def handle(asked: IncomingRequest) -> OutgoingResponse:
        asked.authenticated = request.authenticated
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    dispatcher.add_route("POST", "/v1/x", handle)

    async def call() -> None:
        async with dispatcher.open("POST", "/v1/x", {}):
            pass

    task = asyncio.create_task(call())
    await started.wait()
    task.cancel()
    await asyncio.wait([task])
    running = asyncio.create_task(auditor.run_writer())

    async def stored() -> bool:
        return bool(store.add.await_count)

    await eventually(stored)
    running.cancel()
    [entry] = store.add.await_args.args[1]
    assert (entry.action, entry.status) == ("POST /v1/x", 499)


def _auditor(store: AsyncMock, method: str = "POST") -> tuple[Auditor, IncomingRequest]:
    """An auditor, and an authenticated request."""
    route = Route(method, "/v1/x", AsyncMock())
    request = IncomingRequest(method, URL("/v1/x"), CIMultiDict(), _no_body(), 0)
    request.authenticated = (route, build_principal(1))
    return Auditor(store, "all", f"s{uuid4().hex[:4]}", create_registry()), request


async def _no_body() -> AsyncIterator[bytes]:
    return
    yield b""
