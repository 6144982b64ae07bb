"""Streams memory events over gRPC, with a bounded buffer for each watcher."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.base import Problem
from reverie.contracts.events import ServerSentEvent, read_server_sent_events
from reverie.contracts.operations import FieldValues
from reverie.contracts.problems import build_problem, problem_from_error
from reverie.domain.core.errors import ReverieError, Unavailable
from reverie.mcp.rest_calls import RestCallError, call_rest, encode_query
from reverie.runtime.http.dispatch import Dispatcher
from reverie_services.in_process_rest import InProcessRestClient
from reverie_services.recall.grpc.calls import check_response
from reverie_services.recall.grpc.messages import (
    abort_with_problem,
    decode_fields,
    encode_message,
    forwarded_headers,
)

READER_TASK_NAME = "grpc-watch"
MAX_BACKLOG = 1000
"""Events that a watcher may fall behind before its stream ends."""
RETRY_HINT = "ask again with the last cursor"
STALE_EVENTS = ["staled", "cleared"]
_MEMORY_EVENT_FIELDS = frozenset(pb.MemoryEvent.DESCRIPTOR.fields_by_name) - {"dream"}


@dataclass(frozen=True)
class _StreamEnd:
    """Ends an event stream, with the reason.

    `status` replaces the gRPC status of the problem's code.
    """

    problem: Problem
    status: str | None = None


@dataclass(frozen=True)
class EventStreamServicer:
    """The calls `WatchMemories`, `WatchStale` and `WatchGroup`.

    A watcher that is more than `backlog` events behind is disconnected.
    """

    dispatcher: Dispatcher
    backlog: int = MAX_BACKLOG
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch_memories(self, request: pb.WatchRequest, context: Any) -> AsyncIterator[Any]:
        """`WatchMemories`."""
        async with aclosing(self.iterate_buffered(decode_fields(request), context)) as events:
            async for event in events:
                yield build_memory_event(event)

    async def watch_stale(self, request: pb.WatchStaleRequest, context: Any) -> AsyncIterator[Any]:
        """`WatchStale`."""
        fields = {**decode_fields(request), "event": STALE_EVENTS}
        async with aclosing(self.iterate_buffered(fields, context)) as events:
            async for event in events:
                yield await self.build_stale_event(event, context)

    async def build_stale_event(self, event: ServerSentEvent, context: Any) -> pb.StaleEvent:
        """An event with the memory that it names, unless the caller may not read that."""
        stale_event = pb.StaleEvent(
            cursor=event.id, gap=event.event == "reset", alive=not event.data
        )
        if stale_event.gap or stale_event.alive:
            return stale_event
        stale_event.event = event.event
        # The content is read with the rights that the caller has now.
        rest = InProcessRestClient(self.dispatcher, forwarded_headers(context))
        try:
            memory = await call_rest(rest, "GET", f"/v1/memories/{json.loads(event.data)['id']}")
        except RestCallError as error:
            if error.problem.code != "not_found":
                raise
            return stale_event
        stale_event.memory.CopyFrom(encode_message(pb.Memory, memory))
        return stale_event

    async def watch_group(self, request: pb.WatchGroupRequest, context: Any) -> AsyncIterator[Any]:
        """`WatchGroup`."""
        fields = decode_fields(request)
        path = f"/v1/groups/{quote(str(fields.pop('id', '')), safe='') or '-'}/events"
        async with aclosing(self.iterate_buffered(fields, context, path)) as events:
            async for event in events:
                yield build_group_event(event)

    async def iterate_buffered(
        self, fields: FieldValues, context: Any, path: str = "/v1/events"
    ) -> AsyncGenerator[ServerSentEvent, None]:
        """Yields the events in order. A task reads ahead, up to the backlog limit."""
        queue: asyncio.Queue[ServerSentEvent | _StreamEnd] = asyncio.Queue(self.backlog + 1)
        read_task = asyncio.create_task(
            self._fill_queue(path, fields, forwarded_headers(context), queue),
            name=READER_TASK_NAME,
        )
        stop_task = asyncio.create_task(self.stopping.wait())
        next_task = asyncio.create_task(queue.get())
        try:
            while True:
                await asyncio.wait({next_task, stop_task}, return_when=asyncio.FIRST_COMPLETED)
                if not next_task.done():
                    raise Unavailable("the gateway", f"it is stopping: {RETRY_HINT}")
                event = next_task.result()
                if isinstance(event, _StreamEnd):
                    await abort_with_problem(context, event.problem, event.status)
                next_task = asyncio.create_task(queue.get())
                yield event
        finally:
            for task in (read_task, stop_task, next_task):
                task.cancel()
            await asyncio.wait({read_task, stop_task, next_task})

    async def _fill_queue(
        self,
        path: str,
        fields: FieldValues,
        headers: dict[str, str],
        queue: asyncio.Queue[ServerSentEvent | _StreamEnd],
    ) -> None:
        """Reads events until the queue is full or the stream ends; the reason comes last."""
        query = {name: value for name, value in fields.items() if name != "cursor"}
        query.setdefault("after", fields.get("cursor"))
        end = _StreamEnd(problem_from_error(Unavailable("the stream", f"it broke: {RETRY_HINT}")))
        try:
            url = f"{path}{encode_query(query)}"
            async with self.dispatcher.open("GET", url, headers) as response:
                await check_response(response)
                if response.chunks is not None:
                    async for event in read_server_sent_events(_split_lines(response.chunks)):
                        if queue.qsize() >= self.backlog:
                            detail = (
                                f"this watcher is more than {self.backlog} events behind: "
                                f"{RETRY_HINT}"
                            )
                            problem = build_problem("unavailable", detail)
                            end = _StreamEnd(problem, "RESOURCE_EXHAUSTED")
                            break
                        queue.put_nowait(event)
        except RestCallError as error:
            end = _StreamEnd(error.problem)
        except ReverieError:
            pass
        queue.put_nowait(end)


async def _split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a stream, each as soon as it is complete."""
    begun: list[bytes] = []
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join((*begun, end))
            begun.clear()
        begun.append(rest)


def build_memory_event(event: ServerSentEvent) -> pb.MemoryEvent:
    """An event as a message; the figures of a dream are one field."""
    if event.event == "reset" or not event.data:
        return pb.MemoryEvent(cursor=event.id, gap=event.event == "reset", alive=not event.data)
    body = json.loads(event.data)
    if "run" in body:
        fields = {"event": event.event, "scope": body.get("scope"), "dream": body}
    else:
        fields = {name: body[name] for name in _MEMORY_EVENT_FIELDS & body.keys()}
    memory_event: pb.MemoryEvent = encode_message(pb.MemoryEvent, {**fields, "cursor": event.id})
    return memory_event


def build_group_event(event: ServerSentEvent) -> pb.GroupEvent:
    """An event of a turn, or a sign of life."""
    body = json.loads(event.data) if event.data else {"alive": True}
    group_event: pb.GroupEvent = encode_message(pb.GroupEvent, body | {"position": event.id or 0})
    return group_event
