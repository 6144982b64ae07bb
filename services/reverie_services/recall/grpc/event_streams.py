"""Streams memory events over gRPC, with a bounded buffer for each watcher."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientError, ClientTimeout

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.base import Problem
from reverie.contracts.event_stream import ServerSentEvent, read_server_sent_events
from reverie.contracts.operations import FieldValues
from reverie.contracts.problems import build_problem, problem_from_error
from reverie.domain.core.errors import Unavailable
from reverie.mcp.rest_calls import RestCallError, call_rest, encode_query, parse_rest_problem
from reverie_services.recall.grpc.errors import abort_with_problem
from reverie_services.recall.grpc.rest_bridge import (
    GatewayConnection,
    build_headers,
    decode_fields,
    encode_message,
)

READER_TASK_NAME = "grpc-watch"
RETRY_HINT = "ask again with the last cursor"
_TIMEOUT = ClientTimeout(sock_connect=5.0, sock_read=60.0)
_STALE_EVENTS = ["staled", "cleared"]
_MEMORY_EVENT_FIELDS = frozenset(pb.MemoryEvent.DESCRIPTOR.fields_by_name) - {"dream"}


@dataclass
class StreamEnded(Exception):
    """The events end here, and why."""

    problem: Problem
    status: str | None = None


@dataclass(frozen=True)
class EventStreamServicer:
    """The two streams. `backlog`: how many events a watcher may be behind."""

    gateway: GatewayConnection
    backlog: int
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch_memories(self, request: pb.WatchRequest, context: Any) -> AsyncIterator[Any]:
        """`WatchMemories`."""
        async with aclosing(self._iterate_buffered(decode_fields(request), context)) as events:
            async for event in events:
                yield _build_memory_event(event)

    async def watch_stale(self, request: pb.WatchStaleRequest, context: Any) -> AsyncIterator[Any]:
        """`WatchStale`."""
        fields = {**decode_fields(request), "event": _STALE_EVENTS}
        async with aclosing(self._iterate_buffered(fields, context)) as events:
            async for event in events:
                yield await self._build_stale_event(event, context)

    async def _build_stale_event(self, event: ServerSentEvent, context: Any) -> pb.StaleEvent:
        stale_event = pb.StaleEvent(
            cursor=event.id, gap=event.event == "reset", alive=not event.data
        )
        if stale_event.gap or stale_event.alive:
            return stale_event
        stale_event.event = event.event

        url = f"/v1/memories/{json.loads(event.data)['id']}"
        try:
            memory = await call_rest(self.gateway.create_rest_client(context), "GET", url)
        except RestCallError as error:
            if error.problem.code != "not_found":
                await abort_with_problem(context, error.problem)
            return stale_event
        stale_event.memory.CopyFrom(encode_message(pb.Memory, memory))
        return stale_event

    async def _iterate_buffered(
        self, fields: FieldValues, context: Any
    ) -> AsyncGenerator[ServerSentEvent, None]:
        """The events as they are taken; read ahead of that, as far as the backlog goes."""
        queue: asyncio.Queue[ServerSentEvent | StreamEnded] = asyncio.Queue(self.backlog + 1)
        read_task = asyncio.create_task(
            self._fill_queue(fields, context, queue), name=READER_TASK_NAME
        )
        stop_task = asyncio.create_task(self.stopping.wait())
        next_task = asyncio.create_task(queue.get())
        try:
            while True:
                await asyncio.wait({next_task, stop_task}, return_when=asyncio.FIRST_COMPLETED)
                if not next_task.done():
                    error = Unavailable("the gateway", f"it is stopping: {RETRY_HINT}")
                    await abort_with_problem(context, problem_from_error(error))
                event = next_task.result()
                if isinstance(event, StreamEnded):
                    await abort_with_problem(context, event.problem, event.status)
                next_task = asyncio.create_task(queue.get())
                yield event
        finally:
            for task in (read_task, stop_task, next_task):
                task.cancel()
            await asyncio.wait({read_task, stop_task, next_task})

    async def _fill_queue(
        self, fields: FieldValues, context: Any, queue: asyncio.Queue[ServerSentEvent | StreamEnded]
    ) -> None:
        """Reads events until there is no more room, or there are none."""
        try:
            async with aclosing(self._open_events(fields, context)) as events:
                async for event in events:
                    if queue.qsize() >= self.backlog:
                        queue.put_nowait(_build_overflow(self.backlog))
                        return
                    queue.put_nowait(event)
            queue.put_nowait(
                StreamEnded(
                    problem_from_error(Unavailable("the stream", f"it broke: {RETRY_HINT}"))
                )
            )
        except StreamEnded as end:
            queue.put_nowait(end)

    async def _open_events(
        self, fields: FieldValues, context: Any
    ) -> AsyncGenerator[ServerSentEvent, None]:
        query = {name: value for name, value in fields.items() if name != "cursor"}
        query["after"] = fields.get("cursor")
        url = f"{self.gateway.url}/v1/events{encode_query(query)}"
        try:
            async with self.gateway.http.get(
                url, headers=build_headers(context), timeout=_TIMEOUT
            ) as response:
                if response.status >= 400:
                    body = await response.json(content_type=None)
                    raise StreamEnded(parse_rest_problem(response.status, body))
                async for event in read_server_sent_events(response.content):
                    yield event
        except (ClientError, TimeoutError, OSError, ValueError) as error:
            failure = Unavailable("the stream", f"it broke: {RETRY_HINT}")
            raise StreamEnded(problem_from_error(failure)) from error


def _build_overflow(backlog: int) -> StreamEnded:
    detail = f"this watcher is more than {backlog} events behind (grpc_watch_buffer): {RETRY_HINT}"
    return StreamEnded(build_problem("unavailable", detail), "RESOURCE_EXHAUSTED")


def _build_memory_event(event: ServerSentEvent) -> pb.MemoryEvent:
    """An event as a message; a dream's numbers go in one field."""
    if event.event == "reset" or not event.data:
        return pb.MemoryEvent(cursor=event.id, gap=event.event == "reset", alive=not event.data)
    body = json.loads(event.data)
    if "run" in body:
        fields = {"event": event.event, "scope": body.get("scope"), "dream": body}
    else:
        fields = {name: body[name] for name in _MEMORY_EVENT_FIELDS & body.keys()}
    memory_event: pb.MemoryEvent = encode_message(pb.MemoryEvent, {**fields, "cursor": event.id})
    return memory_event
