"""A Postgres proxy that can stop at a named statement, and URLs of servers behind a proxy."""

from __future__ import annotations

import asyncio
import re
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from reverie.store.db.queries import load_queries
from reverie.testing.chaos_proxy import ChaosProxy
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import Stack, running_stack

_FUNCTION_CALL = re.compile(rb"select \* from (\w+)\([$\d, ]*\)$")


def port_of(url: str) -> int:
    """The port that a URL names."""
    port = urlsplit(url).port
    assert port is not None
    return port


def at_port(url: str, port: int) -> str:
    """The same URL with another port."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{port}")).geturl()


def behind_port(database: DatabaseUrls, port: int) -> DatabaseUrls:
    """The same database, reached by services at another port."""
    services, reader = (at_port(url, port) for url in (database.service_url, database.reader_url))
    return replace(database, service_url=services, reader_url=reader)


@asynccontextmanager
async def stack_behind_a_proxy(
    database: DatabaseUrls, nats_url: str, **overrides: Any
) -> AsyncIterator[tuple[Stack, ChaosProxy]]:
    """The system with a misbehaving network before its Postgres."""
    async with ChaosProxy("127.0.0.1", port_of(database.service_url)) as proxy:
        behind = behind_port(database, proxy.port)
        async with running_stack(behind, nats_url, model_home(), **overrides) as stack:
            yield stack, proxy


SSL = (80_877_103).to_bytes(4, "big")
READY = b"Z"
Step = tuple[str, int]
"""The name of a statement, or of one whose transaction was committed, and how often it came."""


@dataclass
class _ConnectionState:
    """One connection: its prepared statements, what waits for its answer, what came last."""

    prepared: dict[bytes, str] = field(default_factory=dict)
    bound: str = ""
    last: str = ""
    asked: list[str] = field(default_factory=list)


class StepProxy(ChaosProxy):
    """Notes in `steps` each named statement that Postgres has answered, in order.

    `reached(step)` is called before the answer is passed on: if it cuts the connection, the
    statement was executed and the client does not know it. A statement inside a transaction
    comes twice, the second time as `NAME, committed`.
    """

    def __init__(self, host: str, port: int, reached: Callable[[Step], None]) -> None:
        super().__init__(host, port)
        self.steps: list[Step] = []
        self._reached = reached
        self._counts: Counter[str] = Counter()
        self._names = {one.sql: name for name, one in load_queries().items()}

    def reset(self) -> None:
        """Clears the recorded steps."""
        self.steps.clear()
        self._counts.clear()

    async def _link(
        self, task: asyncio.Task[None], reader: StreamReader, writer: StreamWriter
    ) -> None:
        state = _ConnectionState()
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            self._links[task] = (writer, far_writer)
            await _forward_startup(reader, writer, far_reader, far_writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward_requests(reader, far_writer, state))
                group.create_task(self._forward_replies(far_reader, writer, state))
        except* (OSError, asyncio.IncompleteReadError):
            pass  # one end is gone: the caller resets the other

    async def _forward_requests(
        self, reader: StreamReader, writer: StreamWriter, state: _ConnectionState
    ) -> None:
        while True:
            kind, message = await _read_message(reader)
            self._record_message(state, kind, message[5:])
            writer.write(message)
            await writer.drain()

    def _record_message(self, state: _ConnectionState, kind: bytes, body: bytes) -> None:
        match kind:
            case b"P":
                name, sql, _ = body.split(b"\0", 2)
                called = _FUNCTION_CALL.match(sql)
                state.prepared[name] = (
                    called[1].decode() if called else self._names.get(sql.decode(), "")
                )
            case b"B":
                state.bound = state.prepared.get(body.split(b"\0", 2)[1], "")
            case b"E":
                state.last = state.bound
                state.asked.append(state.bound)
            case b"Q":
                commits = body.rstrip(b"\0") == b"commit" and state.last
                state.asked.append(f"{state.last}, committed" if commits else "")
            case _:
                pass

    async def _forward_replies(
        self, reader: StreamReader, writer: StreamWriter, state: _ConnectionState
    ) -> None:
        while True:
            kind, message = await _read_message(reader)
            if kind == READY:
                self._record_steps(state)
            writer.write(message)
            await writer.drain()

    def _record_steps(self, state: _ConnectionState) -> None:
        done, state.asked = [name for name in state.asked if name], []
        for name in done:
            self._counts[name] += 1
            step = (name, self._counts[name])
            self.steps.append(step)
            self._reached(step)


async def _read_message(reader: StreamReader) -> tuple[bytes, bytes]:
    """The kind of the next message, and all of it."""
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4)


async def _forward_startup(
    reader: StreamReader, writer: StreamWriter, far_reader: StreamReader, far_writer: StreamWriter
) -> None:
    """Passes on the first message, and before it the question for TLS with its answer."""
    while True:
        size = await reader.readexactly(4)
        body = await reader.readexactly(int.from_bytes(size, "big") - 4)
        far_writer.write(size + body)
        if body[:4] != SSL:
            return
        writer.write(await far_reader.readexactly(1))
