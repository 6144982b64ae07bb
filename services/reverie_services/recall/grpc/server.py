"""The gRPC server of the gateway: handlers, health, reflection and TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import structlog
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.operations import OPERATIONS
from reverie.domain.core.errors import MalformedInput, Misconfigured
from reverie.runtime.auth.authentication import Authenticator
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.tls import Certificate
from reverie.runtime.observability.call_metrics import CallMetrics
from reverie.runtime.settings.settings import Settings
from reverie_services.in_process_rest import InProcessRestClient
from reverie_services.recall.grpc.calls import TransferServicer, create_unary_handler
from reverie_services.recall.grpc.event_streams import EventStreamServicer
from reverie_services.recall.grpc.interceptors import (
    AuthenticationInterceptor,
    MetricsInterceptor,
    UnreadHealthInterceptor,
)
from reverie_services.recall.grpc.messages import encode_message
from reverie_services.recall.grpc.session_stream import SessionStreamServicer

log = structlog.get_logger()


def load_server_credentials(settings: Settings) -> Any:
    """The TLS credentials of the port; None without TLS. Raises `Misconfigured`."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    certificates = _ReloadingCertificates(settings.tls_cert, settings.tls_key)
    return grpc.dynamic_ssl_server_credentials(certificates.initial, certificates.reload)


class _ReloadingCertificates:
    """A certificate and its key, read again for new connections when the files change."""

    def __init__(self, cert: Path, key: Path) -> None:
        self._paths = cert, key
        # Checks the pair now: gRPC would only report an error at the first call.
        self._certificate = Certificate(cert, key)
        self.initial = self._read_files()

    def reload(self) -> Any:
        """The files if they changed and are a valid pair; None otherwise."""
        if not self._certificate.reload_if_changed():
            return None
        try:
            return self._read_files()
        except OSError as error:
            log.error("certificate_not_renewed", reason=str(error))
            return None

    def _read_files(self) -> Any:
        cert, key = (path.read_bytes() for path in self._paths)
        return grpc.ssl_server_certificate_configuration([(key, cert)])


_SERVICE = pb.DESCRIPTOR.services_by_name["Reverie"]
_SHUTDOWN_GRACE = 2.0
"""Seconds that running calls get when the gateway stops."""

GrpcServerOpener = Callable[[Dispatcher, Authenticator], AbstractAsyncContextManager[None]]


def create_server_opener(settings: Settings, call_metrics: CallMetrics) -> GrpcServerOpener:
    """A function that runs the server, given the gateway's dispatcher and authentication."""

    @asynccontextmanager
    async def open_server(
        dispatcher: Dispatcher, authenticate: Authenticator
    ) -> AsyncIterator[None]:
        event_streams = EventStreamServicer(dispatcher)
        prefix = f"/{_SERVICE.full_name}/"
        interceptors = [
            UnreadHealthInterceptor(),
            MetricsInterceptor(call_metrics),
            AuthenticationInterceptor(authenticate, prefix),
        ]
        server = _create_server(dispatcher, event_streams, settings, interceptors)
        await server.start()
        log.info("listening_grpc", port=settings.grpc_port)
        try:
            yield
        finally:
            event_streams.stopping.set()
            await server.stop(_SHUTDOWN_GRACE)

    return open_server


def _create_server(
    dispatcher: Dispatcher,
    event_streams: EventStreamServicer,
    settings: Settings,
    interceptors: Sequence[Any],
) -> Any:
    """The server, bound to its port. Raises `Misconfigured`."""
    longest = max(2 * settings.body_limit, settings.large_body_limit)
    server = grpc.aio.server(
        interceptors=interceptors,
        options=[
            ("grpc.so_reuseport", 0),
            # A window that grows would hold megabytes of each body that nobody reads.
            ("grpc.http2.bdp_probe", 0),
            # Below this limit the REST call rejects what is too large, with its own message.
            ("grpc.max_receive_message_length", longest),
            ("grpc.max_send_message_length", -1),
        ],
    )
    health_servicer, transfers = GatewayHealthServicer(dispatcher), TransferServicer(dispatcher)
    handlers = {}
    for operation in OPERATIONS:
        name = operation.rpc_name
        unary_handler = create_unary_handler(dispatcher, operation, _get_message_types(name)[1])
        handlers[name] = _build_handler(unary_handler, name, grpc.unary_unary_rpc_method_handler)
    # It needs no API key. As a stream handler it leaves the message unread.
    handlers["Health"] = _build_handler(
        health_servicer.check_ready, "Health", grpc.stream_unary_rpc_method_handler
    )
    for name, method in (
        ("WatchMemories", event_streams.watch_memories),
        ("WatchStale", event_streams.watch_stale),
        ("WatchGroup", event_streams.watch_group),
        ("Export", transfers.export_file),
    ):
        handlers[name] = _build_handler(method, name, grpc.unary_stream_rpc_method_handler)
    sessions = SessionStreamServicer(event_streams)
    handlers["SessionEnd"] = _build_handler(
        sessions.end_session, "SessionEnd", grpc.unary_unary_rpc_method_handler
    )
    handlers["Session"] = _build_handler(
        sessions.follow_session, "Session", grpc.stream_stream_rpc_method_handler
    )
    handlers["Import"] = _build_handler(
        transfers.import_file, "Import", grpc.stream_unary_rpc_method_handler
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(_SERVICE.full_name, handlers),)
    )
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    service_names = (_SERVICE.full_name, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(service_names, server)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"{host}:{settings.grpc_port}"
    try:
        credentials = load_server_credentials(settings)
        if credentials is None:
            server.add_insecure_port(address)
        else:
            server.add_secure_port(address, credentials)
    except RuntimeError:
        reason = f"cannot listen on {address}: stop who uses it or set REVERIE_GRPC_PORT"
        raise Misconfigured("grpc_port", reason) from None
    return server


def _get_message_types(name: str) -> tuple[type[Any], type[Any]]:
    """The types of the request and of the response."""
    method = _SERVICE.methods_by_name[name]
    return GetMessageClass(method.input_type), GetMessageClass(method.output_type)


def _build_handler(method: Any, name: str, create: Any) -> Any:
    request_type, response_type = _get_message_types(name)

    def parse(data: bytes) -> Any:
        try:
            return request_type.FromString(data)
        except DecodeError:
            # gRPC would name the exception to the caller; the interceptor names the message.
            return MalformedInput(f"the message is no {request_type.DESCRIPTOR.full_name}")

    return create(
        method, request_deserializer=parse, response_serializer=response_type.SerializeToString
    )


class GatewayHealthServicer(health.aio.HealthServicer):  # type: ignore[misc]
    """Reports the state of `/ready`, also as the standard service grpc.health.v1."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__()
        self._rest = InProcessRestClient(dispatcher, {})

    async def check_ready(self, _: Any, __: Any) -> Any:
        """`Health`: the result of each check."""
        status, body = await self._rest("GET", "/ready")
        fields = {"ready": status == 200, "checks": body.get("checks", {})}
        return encode_message(pb.HealthResponse, fields)

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Returns the status of a service, or of the server if the request names no service."""
        await self._update_status()
        return await super().Check(request, context)

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802
        """The status, and each change that a `Check` finds."""
        await self._update_status()
        await super().Watch(request, context)

    async def _update_status(self) -> None:
        response_type = health_pb2.HealthCheckResponse
        ready = (await self.check_ready(None, None)).ready
        for name in ("", _SERVICE.full_name):
            await self.set(name, response_type.SERVING if ready else response_type.NOT_SERVING)
