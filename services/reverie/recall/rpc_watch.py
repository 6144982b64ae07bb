"""Streams over gRPC, out of the gateway's own events.

Events wait for a watcher that is slow; one that is too far behind is told so after what waits for
it, and goes on from its last cursor. Nothing is dropped in silence.
"""

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
from reverie.contracts.operations import Fields
from reverie.contracts.problems import problem, problem_of
from reverie.contracts.sse import Sent, sent_in
from reverie.domain.errors import Unavailable
from reverie.mcp.rest import Failed, ask, parameters, problem_in
from reverie.recall.rpc_calls import Own, fields_of, headers_of, message
from reverie.recall.rpc_errors import refuse

READER = "grpc-watch"
AGAIN = "ask again with the last cursor"
_SILENCE = ClientTimeout(sock_connect=5.0, sock_read=60.0)
_DOUBTS = ["staled", "cleared"]
_PLAIN = frozenset(pb.MemoryEvent.DESCRIPTOR.fields_by_name) - {"dream"}


@dataclass
class Ended(Exception):
    """The events end here, and why."""

    problem: Problem
    status: str | None = None


@dataclass(frozen=True)
class Watching:
    """The two streams. `backlog`: how many events a watcher may be behind."""

    own: Own
    backlog: int
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def memories(self, request: pb.WatchRequest, context: Any) -> AsyncIterator[Any]:
        """`WatchMemories`."""
        async with aclosing(self._events(fields_of(request), context)) as events:
            async for one in events:
                yield _event(one)

    async def stale(self, request: pb.WatchStaleRequest, context: Any) -> AsyncIterator[Any]:
        """`WatchStale`."""
        asked = {**fields_of(request), "event": _DOUBTS}
        async with aclosing(self._events(asked, context)) as events:
            async for one in events:
                yield await self._doubt(one, context)

    async def _doubt(self, one: Sent, context: Any) -> pb.StaleEvent:
        told = pb.StaleEvent(cursor=one.id, gap=one.event == "reset", alive=not one.data)
        if told.gap or told.alive:
            return told
        told.event = one.event

        where = f"/v1/memories/{json.loads(one.data)['id']}"
        try:
            found = await ask(self.own.rest(context), "GET", where)
        except Failed as failed:
            if failed.problem.code != "not_found":
                await refuse(context, failed.problem)
            return told
        told.memory.CopyFrom(message(pb.Memory, found))
        return told

    async def _events(self, asked: Fields, context: Any) -> AsyncGenerator[Sent, None]:
        """The events as they are taken; read ahead of that, as far as the backlog goes."""
        waiting: asyncio.Queue[Sent | Ended] = asyncio.Queue(self.backlog + 1)
        reading = asyncio.create_task(self._read(asked, context, waiting), name=READER)
        ending = asyncio.create_task(self.over.wait())
        taking = asyncio.create_task(waiting.get())
        try:
            while True:
                await asyncio.wait({taking, ending}, return_when=asyncio.FIRST_COMPLETED)
                if not taking.done():
                    away = Unavailable("the gateway", f"it is stopping: {AGAIN}")
                    await refuse(context, problem_of(away))
                found = taking.result()
                if isinstance(found, Ended):
                    await refuse(context, found.problem, found.status)
                taking = asyncio.create_task(waiting.get())
                yield found
        finally:
            for task in (reading, ending, taking):
                task.cancel()
            await asyncio.wait({reading, ending, taking})

    async def _read(
        self, asked: Fields, context: Any, waiting: asyncio.Queue[Sent | Ended]
    ) -> None:
        """Reads events until there is no more room, or there are none."""
        try:
            async with aclosing(self._open(asked, context)) as events:
                async for one in events:
                    if waiting.qsize() >= self.backlog:
                        waiting.put_nowait(_behind(self.backlog))
                        return
                    waiting.put_nowait(one)
            waiting.put_nowait(Ended(problem_of(Unavailable("the stream", f"it broke: {AGAIN}"))))
        except Ended as ended:
            waiting.put_nowait(ended)

    async def _open(self, asked: Fields, context: Any) -> AsyncGenerator[Sent, None]:
        query = {name: value for name, value in asked.items() if name != "cursor"}
        query["after"] = asked.get("cursor")
        where = f"{self.own.url}/v1/events{parameters(query)}"
        try:
            async with self.own.http.get(
                where, headers=headers_of(context), timeout=_SILENCE
            ) as answer:
                if answer.status >= 400:
                    body = await answer.json(content_type=None)
                    raise Ended(problem_in(answer.status, body))
                async for one in sent_in(answer.content):
                    yield one
        except (ClientError, TimeoutError, OSError, ValueError) as error:
            broke = Unavailable("the stream", f"it broke: {AGAIN}")
            raise Ended(problem_of(broke)) from error


def _behind(backlog: int) -> Ended:
    said = f"this watcher is more than {backlog} events behind (grpc_backlog): {AGAIN}"
    return Ended(problem("unavailable", said), "RESOURCE_EXHAUSTED")


def _event(one: Sent) -> pb.MemoryEvent:
    """An event as a message; a dream's numbers go in one field."""
    if one.event == "reset" or not one.data:
        return pb.MemoryEvent(cursor=one.id, gap=one.event == "reset", alive=not one.data)
    body = json.loads(one.data)
    if "run" in body:
        told = {"event": one.event, "scope": body.get("scope"), "dream": body}
    else:
        told = {name: body[name] for name in _PLAIN & body.keys()}
    found: pb.MemoryEvent = message(pb.MemoryEvent, {**told, "cursor": one.id})
    return found
