"""The gateway's door for gRPC: the service, health and reflection on a port of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import grpc
import structlog
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.operations import OPERATIONS
from reverie.domain.errors import Misconfigured, ReverieError
from reverie.recall.own import ask_own
from reverie.recall.rpc_calls import Own, message, session, unary
from reverie.recall.rpc_carry import Carrying
from reverie.recall.rpc_keys import Keyed
from reverie.recall.rpc_seen import Seen
from reverie.recall.rpc_tls import credentials_of
from reverie.recall.rpc_watch import Watching
from reverie.runtime.auth import Admit
from reverie.runtime.call_meters import CallMeters
from reverie.runtime.client_meters import ClientMeters
from reverie.runtime.settings import Settings

log = structlog.get_logger()

_SERVICE = pb.DESCRIPTOR.services_by_name["Reverie"]
_GRACE = 2.0
"""Seconds that calls under way get once the gateway stops."""

OpenDoor = Callable[[str, Admit], AbstractAsyncContextManager[None]]


def door(settings: Settings, calls: CallMeters, clients: ClientMeters) -> OpenDoor:
    """Opens the port, given the gateway's own URL and what tells who holds a key."""

    @asynccontextmanager
    async def open_door(url: str, admit: Admit) -> AsyncIterator[None]:
        async with session(settings.request_timeout, clients) as http:
            own = Own(http, url)
            watching = Watching(own, settings.grpc_backlog)
            before = [Seen(calls), Keyed(admit, f"/{_SERVICE.full_name}/")]
            server = _server(own, watching, settings, before)
            await server.start()
            log.info("listening_grpc", port=settings.grpc_port)
            try:
                yield
            finally:
                watching.over.set()
                await server.stop(_GRACE)

    return open_door


def _server(own: Own, watching: Watching, settings: Settings, before: Sequence[Any]) -> Any:
    """The server, bound to its port. Raises `Misconfigured` where that cannot be."""
    server = grpc.aio.server(
        interceptors=before,
        options=[
            ("grpc.so_reuseport", 0),
            # What is too large is refused by the REST call, in its words, up to this.
            ("grpc.max_receive_message_length", max(2 * settings.body_limit, settings.git_limit)),
            ("grpc.max_send_message_length", -1),
        ],
    )
    healthy, carrying = Healthy(own), Carrying(own)
    calls = {one.rpc: unary(own, one, *_types(one.rpc)) for one in OPERATIONS}
    # It needs no key and asks nothing: taken for a stream, a message stays unread.
    calls["Health"] = _plain(healthy.ready, "Health", grpc.stream_unary_rpc_method_handler)
    for name, behaviour in (
        ("WatchMemories", watching.memories),
        ("WatchStale", watching.stale),
        ("Export", carrying.export),
    ):
        calls[name] = _plain(behaviour, name, grpc.unary_stream_rpc_method_handler)
    calls["Import"] = _plain(carrying.take, "Import", grpc.stream_unary_rpc_method_handler)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(_SERVICE.full_name, calls),)
    )
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    known = (_SERVICE.full_name, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(known, server)
    _bind(server, settings)
    return server


def _types(name: str) -> tuple[type[Any], type[Any]]:
    """The messages that go in and come out."""
    method = _SERVICE.methods_by_name[name]
    return GetMessageClass(method.input_type), GetMessageClass(method.output_type)


def _plain(behaviour: Any, name: str, make: Any) -> Any:
    asked, answer = _types(name)
    return make(
        behaviour,
        request_deserializer=asked.FromString,
        response_serializer=answer.SerializeToString,
    )


class Healthy(health.aio.HealthServicer):  # type: ignore[misc]
    """What `/ready` says when it is asked, also as grpc.health.v1 has it; without a key."""

    def __init__(self, own: Own) -> None:
        super().__init__()
        self._own = own

    async def ready(self, _: Any, __: Any) -> Any:
        """`Health`: each check."""
        try:
            status, body = await ask_own(self._own.http, "GET", f"{self._own.url}/ready", None, {})
        except ReverieError:
            return pb.HealthResponse(ready=False)
        told = {"ready": status == 200, "checks": body.get("checks", {})}
        return message(pb.HealthResponse, told)

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        """The status of the service, or of the server where none is named."""
        await self._look()
        return await super().Check(request, context)

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802
        """The status, and each change that somebody's `Check` finds."""
        await self._look()
        await super().Watch(request, context)

    async def _look(self) -> None:
        found = health_pb2.HealthCheckResponse
        ready = (await self.ready(None, None)).ready
        for name in ("", _SERVICE.full_name):
            await self.set(name, found.SERVING if ready else found.NOT_SERVING)


def _bind(server: Any, settings: Settings) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    where = f"{host}:{settings.grpc_port}"
    try:
        credentials = credentials_of(settings)
        if credentials is None:
            server.add_insecure_port(where)
        else:
            server.add_secure_port(where, credentials)
    except RuntimeError:
        reason = f"cannot listen on {where}: stop who uses it or set REVERIE_GRPC_PORT"
        raise Misconfigured("grpc_port", reason) from None
