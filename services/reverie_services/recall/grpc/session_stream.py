"""The gRPC calls `Session`, one stream for a whole session, and `SessionEnd`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.events import ServerSentEvent
from reverie.contracts.operations import FieldValues
from reverie.domain.core.errors import InvalidInput
from reverie.mcp.rest_calls import RestCallError, call_rest, call_rest_any
from reverie_services.in_process_rest import InProcessRestClient
from reverie_services.recall.grpc.event_streams import (
    STALE_EVENTS,
    EventStreamServicer,
    build_memory_event,
)
from reverie_services.recall.grpc.messages import (
    decode_fields,
    encode_message,
    forwarded_headers,
    pop_idempotency_key,
)

MAX_WAIT_SECONDS = 60.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
"""Seconds between two looks for a summary."""
MAX_QUERY_CHARS = 8_000
MAX_SUMMARY_MEMORIES = 20


@dataclass
class _StreamedSession:
    """The session of a stream, and its REST calls."""

    rest: InProcessRestClient
    id: str = ""
    scope: str = ""


@dataclass(frozen=True)
class SessionStreamServicer:
    """The calls `SessionEnd` and `Session`."""

    events: EventStreamServicer

    async def end_session(self, request: pb.SessionEndRequest, context: Any) -> Any:
        """`SessionEnd`: waits for the summary if it is asked to."""
        rest = InProcessRestClient(self.events.dispatcher, forwarded_headers(context))
        return await self._end(rest, request)

    async def follow_session(
        self, requests: AsyncIterator[pb.SessionInput], context: Any
    ) -> AsyncIterator[pb.SessionOutput]:
        """`Session`: answers each step before it reads the next, with events in between."""
        session = _StreamedSession(
            InProcessRestClient(self.events.dispatcher, forwarded_headers(context))
        )
        first = await anext(requests, pb.SessionInput())
        yield await self._open(session, first)
        changes = self.events.iterate_buffered({"scope": [session.scope]}, context)
        async with aclosing(changes), aclosing(_merge(requests, changes)) as steps:
            async for step in steps:
                if isinstance(step, ServerSentEvent):
                    yield await self._build_change(step, context)
                    continue
                async for output in self._answer(session, step):
                    yield output
                if step.WhichOneof("step") == "end":
                    return

    async def _open(self, session: _StreamedSession, first: pb.SessionInput) -> pb.SessionOutput:
        """Starts or joins the session. Raises `InvalidInput` for any other first message."""
        kind = first.WhichOneof("step")
        if kind == "start":
            fields = decode_fields(first.start)
            headers = pop_idempotency_key(fields)
            path = "/v1/sessions/start"
            body = await call_rest_any(session.rest, "POST", path, None, fields, headers)
        elif kind == "join":
            page = await call_rest(session.rest, "GET", "/v1/sessions", {"session": first.join})
            found = page["items"][0]
            body = {"session": found["id"], "scope": found["scope"], "context": ""}
        else:
            raise InvalidInput("step", "the first message must be start or join")
        session.id, session.scope = str(body["session"]), str(body["scope"])
        return pb.SessionOutput(started=encode_message(pb.SessionStartResponse, body))

    async def _answer(
        self, session: _StreamedSession, step: pb.SessionInput
    ) -> AsyncGenerator[pb.SessionOutput, None]:
        kind = step.WhichOneof("step")
        if kind == "append":
            turns = decode_fields(step.append).get("turns", [])
            body = {"session": session.id, "turns": turns}
            added = await call_rest(session.rest, "POST", "/v1/turns", None, body)
            yield pb.SessionOutput(appended=encode_message(pb.AppendTurnsResponse, added))
            said = [turn["content"] for turn in turns if turn.get("role") == "user"]
            if said and not step.append.without_context:
                query = {"query": said[-1][:MAX_QUERY_CHARS]}
                if (output := await self._preflow(session, query)) is not None:
                    yield output
        elif kind == "preflow":
            if (output := await self._preflow(session, decode_fields(step.preflow))) is not None:
                yield output
        elif kind == "end":
            step.end.id = session.id
            yield pb.SessionOutput(ended=await self._end(session.rest, step.end))
        else:
            raise InvalidInput("step", "give append, preflow or end: the session is open")

    async def _preflow(
        self, session: _StreamedSession, fields: FieldValues
    ) -> pb.SessionOutput | None:
        """What is new for the session; None if nothing is."""
        body = {**fields, "session": session.id}
        found = await call_rest(session.rest, "POST", "/v1/preflow", None, body)
        if not found["markdown"]:
            return None
        return pb.SessionOutput(context=encode_message(pb.PreflowResponse, found))

    async def _build_change(self, event: ServerSentEvent, context: Any) -> pb.SessionOutput:
        if event.event in STALE_EVENTS:
            return pb.SessionOutput(warning=await self.events.build_stale_event(event, context))
        return pb.SessionOutput(event=build_memory_event(event))

    async def _end(self, rest: InProcessRestClient, request: pb.SessionEndRequest) -> Any:
        fields = decode_fields(request)
        wait_seconds = float(fields.pop("wait_seconds", 0.0))
        if not 0 <= wait_seconds <= MAX_WAIT_SECONDS:
            raise InvalidInput("wait_seconds", f"must be from 0 to {MAX_WAIT_SECONDS:g}")
        session, headers = quote(str(fields.pop("id", "")), safe=""), pop_idempotency_key(fields)
        path = f"/v1/sessions/{session or '-'}/end"
        body = await call_rest_any(rest, "POST", path, None, fields, headers)
        response = encode_message(pb.SessionEndResponse, body)
        if wait_seconds and (summary := await self._await_summary(rest, body, wait_seconds)):
            response.summary = summary
        return response

    async def _await_summary(
        self, rest: InProcessRestClient, ended: FieldValues, wait_seconds: float
    ) -> str | None:
        """What a dream made of the session; None if it is not there in time."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + wait_seconds, FIRST_PAUSE
        while not self.events.stopping.is_set():
            # A dream stores what it made together with the mark that the turns are digested.
            if ended["dream"] is None or not await _awaits_dream(rest, ended):
                return await _find_summary(rest, ended)
            if loop.time() >= deadline:
                return None
            await asyncio.sleep(min(pause, max(deadline - loop.time(), 0.0)))
            pause = min(2 * pause, LONGEST_PAUSE)
        return None


async def _awaits_dream(rest: InProcessRestClient, ended: FieldValues) -> bool:
    """Whether a turn of the session waits to be digested; the last one is digested last."""
    cursor: str | None = ""
    turns: list[FieldValues] = []
    while cursor is not None:
        path = f"/v1/sessions/{ended['session']}/turns"
        page = await _read_unless_busy(rest, path, {"limit": 200, "cursor": cursor or None})
        if page is None:
            return True
        turns, cursor = page["items"] or turns, page.get("next")
    return bool(turns) and not turns[-1]["digested"]


async def _find_summary(rest: InProcessRestClient, ended: FieldValues) -> str | None:
    """The overview that a dream made of the session; of a short one, the memories themselves."""
    query = {"key": f"session:{ended['session']}", "kind": "session", "limit": 1}
    page = await _read_unless_busy(rest, "/v1/memories", query)
    if not page or not page["items"]:
        query = {"session": str(ended["session"]), "limit": MAX_SUMMARY_MEMORIES}
        page = await _read_unless_busy(rest, "/v1/memories", query)
    memories = reversed(page["items"]) if page else ()
    return "\n".join(str(memory["content"]) for memory in memories) or None


async def _read_unless_busy(
    rest: InProcessRestClient, path: str, query: FieldValues
) -> FieldValues | None:
    """The answer to a read; None if the gateway has no time for it now."""
    try:
        return await call_rest(rest, "GET", path, query)
    except RestCallError as error:
        if error.problem.code in {"rate_limited", "overloaded", "unavailable"}:
            return None
        raise


async def _merge(
    requests: AsyncIterator[pb.SessionInput], events: AsyncGenerator[ServerSentEvent, None]
) -> AsyncGenerator[Any, None]:
    """Steps and events as they come, in turns where both wait; one of each is read ahead at most.

    It ends when the caller sends no more.
    """
    next_step = asyncio.ensure_future(anext(requests, None))
    next_event = asyncio.ensure_future(anext(events))
    try:
        while True:
            await asyncio.wait({next_step, next_event}, return_when=asyncio.FIRST_COMPLETED)
            if next_step.done():
                step = next_step.result()
                if step is None:
                    return
                yield step
                next_step = asyncio.ensure_future(anext(requests, None))
            if next_event.done():
                event = next_event.result()
                yield event
                next_event = asyncio.ensure_future(anext(events))
    finally:
        for task in (next_step, next_event):
            task.cancel()
        await asyncio.wait({next_step, next_event})
