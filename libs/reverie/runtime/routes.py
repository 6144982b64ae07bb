"""The table of routes of a service, and the way of a request through one of them."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    aclosing,
    asynccontextmanager,
    nullcontext,
)
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from aiohttp import web
from aiohttp.web_exceptions import HTTPRequestEntityTooLarge
from multidict import MultiDict
from pydantic import BaseModel

from reverie.domain.access import Principal, act_for
from reverie.domain.errors import Malformed, TooLarge, TooMany, Unavailable
from reverie.domain.idempotency import StoredReply
from reverie.domain.known_secrets import Known, Outdated, knowing
from reverie.runtime.admission import Admission
from reverie.runtime.auth import KeyFinder, TokenReader, authenticate, bearer_of
from reverie.runtime.body import check_path, parse_body, parse_query
from reverie.runtime.calls import Call, Handler, Reply, rendered
from reverie.runtime.endless import until_over
from reverie.runtime.for_reads import ForReads
from reverie.runtime.idempotency import IdempotencyStore, idempotency_key, once, once_streamed
from reverie.runtime.observe import LATER, LEFT, PROBES
from reverie.runtime.positions import Positions
from reverie.runtime.rates import Left, Rates
from reverie.runtime.sealed import Sealed
from reverie.runtime.sockets import Asked, speak
from reverie.runtime.streams import Streamed, check_packing, send, taken
from reverie.runtime.telemetry import current_trace_id


@dataclass(frozen=True)
class Route:
    """One call: what it takes, what it gives, who may use it. OpenAPI is made from this.

    `path` has its variables in braces. `open`: no key at all. `streams`: the body is taken, or the
    answer made, piece by piece, without the time limit of requests; `stream_limit` bounds the body.
    `limit`: bytes of a whole body, where they are not those of all calls, and the setting they are.
    `socket`: its stream of events is told over a WebSocket. `tagged`: it knows versions, by ETag.
    `compares`: what it writes is refused as `Outdated` where the secrets taken out of it changed.
    `takes`: media types of a body that is no model; `gives`: those of answers beside `answer`, each
    with an example. `makes`: memories that a body asks for. `passes_on`: it makes calls of its own
    with the same key, which are what limits and the audit log count. `reads`: it changes nothing,
    whatever its method. `shows`: its answer holds a secret, so that it is kept sealed.
    """

    method: str
    path: str
    handler: Handler
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    status: int = 200
    open: bool = False
    summary: str = ""
    streams: bool = False
    stream_limit: int = 0
    limit: int = 0
    limit_setting: str = "body_limit"
    socket: bool = False
    tagged: bool = False
    compares: bool = False
    takes: tuple[str, ...] = ()
    gives: Mapping[str, str] = field(default_factory=dict)
    makes: Callable[[Any], int] | None = None
    passes_on: bool = False
    reads: bool = False
    shows: bool = False

    @property
    def name(self) -> str:
        """As a person would name it: `POST /v1/remember`."""
        return f"{self.method} {self.path}"


ADMITTED: web.RequestKey[tuple[Route, Principal]] = web.RequestKey("ADMITTED", tuple)
"""The route of a request that was let in, and who sent it."""
_WORTH_PACKING = 1024
"""Bytes above which an answer is packed for who asks for it."""
_LONG_BODY = 256 * 1024
"""Bytes of a body that is worked on beside the event loop, so that others need not wait for it."""
_AS_GZIP = 16 + zlib.MAX_WBITS

OWN_URL: web.AppKey[list[str]] = web.AppKey("OWN_URL", list)
"""Where this process is reached from within, where that is another way than from without."""

KnownOf = Callable[[int], Awaitable[Known]]
"""The secrets of a tenant, by its number."""


@dataclass(frozen=True)
class Door:
    """What every route of a service needs: keys, idempotency, limits."""

    keys: KeyFinder
    idempotency: IdempotencyStore | None
    body_limit: int
    request_timeout: float
    known_of: KnownOf | None = None
    known_lately: KnownOf | None = None
    rates: Rates | None = None
    positions: Positions = field(default_factory=Positions)
    admission: Admission | None = None
    tokens: TokenReader | None = None

    def turn(self, route: Route) -> AbstractAsyncContextManager[None]:
        """A place among the requests that are worked on; probes need none."""
        if self.admission is None or route.path in PROBES:
            return nullcontext()
        return self.admission.turn(route.name)


def add_routes(
    app: web.Application, routes: list[Route], door: Door, doors: dict[object, Admission]
) -> None:
    """Adds the routes to the app; a GET answers HEAD too. `doors`: gets who lets in, by handler."""
    for route in routes:
        handler = partial(_way_of(route), route, door)
        if door.admission is not None and not route.streams and route.path not in PROBES:
            doors[handler] = door.admission
        if route.method == "GET":
            app.router.add_get(route.path, handler, allow_head=True)
        else:
            app.router.add_route(route.method, route.path, handler)


def _way_of(route: Route) -> Callable[[Route, Door, web.Request], Awaitable[web.StreamResponse]]:
    if route.socket:
        return _handle_socket
    return _handle_stream if route.streams else _handle


async def _handle(route: Route, door: Door, request: web.Request) -> web.Response:
    act_for(None)
    async with asyncio.timeout(door.request_timeout):
        holder = None if route.open else await _admit(route, door, request)
        # A place is taken once all has arrived, so that slow clients keep none.
        data = await read_body(request, route.limit or door.body_limit, route.limit_setting)
        async with door.turn(route):
            reply, told = await _carried_out(route, door, request, data, holder)
    if _known_already(route, request, reply):
        return web.Response(status=304, headers={"ETag": reply.headers["ETag"]})
    response = web.Response(status=reply.status, body=reply.body, headers={**reply.headers, **told})
    if len(reply.body) > _WORTH_PACKING:
        response.headers["Vary"] = "Accept-Encoding"
        if _takes_gzip(request):
            response.headers["Content-Encoding"] = "gzip"
            response.body = await _packed(reply.body)
    return response


async def _packed(body: bytes) -> bytes:
    """As gzip at its quickest: a short body takes less than to hand it to a thread."""
    if len(body) > _LONG_BODY:
        return await asyncio.to_thread(zlib.compress, body, zlib.Z_BEST_SPEED, _AS_GZIP)
    return zlib.compress(body, zlib.Z_BEST_SPEED, _AS_GZIP)


async def _carried_out(
    route: Route, door: Door, request: web.Request, data: bytes, holder: Principal | None
) -> tuple[StoredReply, Mapping[str, str]]:
    """The answer, and headers that tell where in the log of the store it stands."""
    with await _knowing(route, door, holder), door.positions.around(request.headers):
        read = partial(_read_call, route, request, data, holder)
        call = await asyncio.to_thread(read) if len(data) > _LONG_BODY else read()
        request[LATER] = call.later
        await _count(route, door, call, len(data))
        try:
            reply = await _answer(route, door, request, (call, data))
        except Outdated:
            reply = await _answer_anew(route, door, request, (call, data))
        return reply, await door.positions.headers(route.method, reply.status)


async def _admit(route: Route, door: Door, request: web.Request) -> Principal:
    """The holder of the key, who has sent no more requests than the key may."""
    holder = await authenticate(request.headers, door.keys, door.tokens)
    request[ADMITTED] = (route, holder)
    act_for(holder)
    if door.rates is not None and not route.passes_on:
        try:
            left = await door.rates.request(holder)
        except TooMany as refused:
            request[LEFT] = Left.after(refused).headers()
            raise
        if left is not None:
            request[LEFT] = left.headers()
    return holder


async def _counted(
    route: Route, door: Door, holder: Principal, pieces: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """The pieces of a body, each counted as what its key sends."""
    async for piece in pieces:
        if door.rates is not None and not route.passes_on:
            await door.rates.sent(holder, len(piece))
        yield piece


async def _count(route: Route, door: Door, call: Call[Any, Any], size: int) -> None:
    """What a request takes of the quotas of its key and tenant. Raises `TooMany`."""
    if door.rates is None or call.holder is None:
        return
    await door.rates.sent(call.holder, size)
    if route.makes is not None:
        await door.rates.memories(call.holder, route.makes(call.body))


def _takes_gzip(request: web.Request) -> bool:
    """Whether the client asked for gzip, and did not give it a weight of zero."""
    for one in request.headers.get("Accept-Encoding", "").lower().split(","):
        name, _, weight = one.replace(" ", "").partition(";q=")
        if name == "gzip":
            return weight.strip("0.") != "" or not weight
    return False


def _known_already(route: Route, request: web.Request, reply: StoredReply) -> bool:
    tags = [tag.strip() for tag in request.headers.get("If-None-Match", "").split(",")]
    tag = reply.headers.get("ETag")
    return route.method == "GET" and tag is not None and bool({tag, f"W/{tag}", "*"} & {*tags})


async def _handle_stream(route: Route, door: Door, request: web.Request) -> web.StreamResponse:
    holder = await _admit(route, door, request)
    call = _read_call(route, request, b"", holder)
    if door.rates is not None:
        call = replace(call, spend=partial(door.rates.memories, holder))
    request[LATER] = call.later
    with door.positions.around(request.headers):
        with await _knowing(route, door, holder):
            result = await _streamed(route, door, request, call)
        if isinstance(result, Streamed):
            return await send(request, result, door.request_timeout)
    reply = result if isinstance(result, StoredReply) else rendered(result)
    told = await door.positions.headers(route.method, reply.status)
    return web.Response(status=reply.status, body=reply.body, headers={**reply.headers, **told})


async def _streamed(
    route: Route, door: Door, request: web.Request, call: Call[Any, Any]
) -> BaseModel | Reply | Streamed | StoredReply:
    """The answer; to a long body that names itself it is given once."""
    if not route.stream_limit:
        return await route.handler(call)
    taking = taken(request, route.stream_limit, "import_limit")
    pieces = _counted(route, door, call.principal, taking)
    if not (call.idempotency_key and door.idempotency) or route.passes_on:
        return await route.handler(replace(call, stream=pieces))

    async def answered(body: AsyncIterator[bytes]) -> StoredReply:
        return await _run(route, replace(call, stream=body))

    named = f"{route.method} {request.path_qs}"
    return await once_streamed(
        door.idempotency, call.principal.tenant, call.idempotency_key, (named, pieces), answered
    )


async def _handle_socket(route: Route, door: Door, request: web.Request) -> web.StreamResponse:
    holder = await _admit(route, door, request)
    call = _read_call(route, request, b"", holder)

    @asynccontextmanager
    async def opened(asked: Asked | None) -> AsyncIterator[AsyncIterator[bytes]]:
        result = await route.handler(call if asked is None else _asking(route, call, asked))
        if not isinstance(result, Streamed):
            raise TypeError("only a stream can be told over a WebSocket")
        async with aclosing(until_over(request, result.pieces)) as pieces:
            yield pieces

    return await speak(request, opened, door.request_timeout)


def _asking(route: Route, call: Call[Any, Any], asked: Asked) -> Call[Any, Any]:
    """The call with other parameters; where to go on, they say, and no header."""
    given = MultiDict((name, one) for name, many in asked.items() for one in many)
    return replace(call, query=parse_query(route.query, given), headers={})


async def _knowing(
    route: Route, door: Door, holder: Principal | None
) -> AbstractContextManager[None]:
    """What is redacted while a write is carried out loses the secrets of its tenant's vault."""
    known_of = (route.compares and door.known_lately) or door.known_of
    if holder is None or known_of is None or route.method == "GET":
        return nullcontext()
    return knowing(await known_of(holder.tenant), holder.may_read)


async def _answer_anew(
    route: Route, door: Door, request: web.Request, read: tuple[Call[Any, Any], bytes]
) -> StoredReply:
    """The answer with the secrets as they are now."""
    assert door.known_of is not None
    who = read[0].principal
    try:
        with knowing(await door.known_of(who.tenant), who.may_read):
            return await _answer(route, door, request, read)
    except Outdated:
        raise Unavailable("the vault", "its secrets change all the time: try again") from None


async def read_body(request: web.Request, limit: int, setting: str = "body_limit") -> bytes:
    """The whole body; raises `TooLarge` above `limit` bytes."""
    check_packing(request)
    announced = request.content_length or 0
    if announced > limit:
        raise TooLarge("body", announced, limit, setting)
    try:
        return await request.clone(client_max_size=limit).read()
    except HTTPRequestEntityTooLarge:
        raise TooLarge("body", limit + 1, limit, setting) from None
    except (web.RequestPayloadError, web.HTTPBadRequest):
        raise Malformed("the body cannot be read: its encoding or framing is broken") from None


def _read_call(
    route: Route, request: web.Request, data: bytes, holder: Principal | None
) -> Call[Any, Any]:
    check_path(request.match_info)
    return Call(
        body=parse_body(route.body, data) if route.body else None,
        query=parse_query(route.query, request.query),
        path=dict(request.match_info),
        headers=request.headers,
        raw=data,
        trace_id=current_trace_id() or "",
        idempotency_key=idempotency_key(request.headers, holder),
        holder=holder,
        reached_at=_own_url(request),
    )


def _own_url(request: web.Request) -> str:
    """Where the connection ends; a `Host` header may say anything. Behind TLS: the way inside."""
    for inside in request.app.get(OWN_URL, ()):
        return inside
    ends = request.transport.get_extra_info("sockname") if request.transport else None
    if not ends:
        return ""
    host = f"[{ends[0]}]" if ":" in ends[0] else ends[0]
    return f"http://{host}:{ends[1]}"


async def _answer(
    route: Route, door: Door, request: web.Request, read: tuple[Call[Any, Any], bytes]
) -> StoredReply:
    call, data = read
    guarded = route.method != "GET" and call.idempotency_key and call.holder
    if not guarded or door.idempotency is None:
        return await _run(route, call)
    kept: IdempotencyStore = door.idempotency
    if route.shows:
        kept = Sealed(kept, bearer_of(request.headers) or "")
    return await once(
        ForReads(kept) if route.reads else kept,
        call.principal.tenant,
        call.idempotency_key or "",
        (f"{route.method} {request.path_qs}", data),
        partial(_run, route, call),
    )


async def _run(route: Route, call: Call[Any, Any]) -> StoredReply:
    result = await route.handler(call)
    if isinstance(result, Streamed):
        raise TypeError("only a route that streams may answer with a stream")
    reply = rendered(result)
    if isinstance(result, BaseModel) and route.status != reply.status:
        return StoredReply(route.status, reply.body, reply.headers)
    return reply
