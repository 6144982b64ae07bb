"""gRPC server interceptors: authentication, spans and metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from inspect import isasyncgenfunction
from typing import Any

import grpc
from grpc_health.v1 import health_pb2

from reverie.contracts.problems import problem_from_error
from reverie.domain.core.errors import ReverieError
from reverie.runtime.auth.authentication import Authenticator
from reverie.runtime.observability.call_metrics import CallMetrics, CallOutcome
from reverie_services.recall.grpc.messages import abort_on_error, abort_with_problem


class AuthenticationInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Rejects calls without a valid API key before their message, which may be long, is read."""

    def __init__(self, authenticate: Authenticator, service: str) -> None:
        self._authenticate = authenticate
        self._service = service

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        """The handler of the method, or one that rejects the call and reads nothing."""
        handler = await continuation(details)
        name = details.method.removeprefix(self._service)
        is_public = details.method.startswith(_HEALTH_METHODS) or name == "Health"
        if handler is None or is_public:
            return handler
        authorization = dict(details.invocation_metadata or ()).get("authorization")
        try:
            await self._authenticate(
                {"Authorization": authorization} if isinstance(authorization, str) else {}
            )
        except ReverieError as error:
            return grpc.stream_unary_rpc_method_handler(partial(_reject, error))
        return handler


async def _reject(error: ReverieError, _: Any, context: Any) -> None:
    await abort_with_problem(context, problem_from_error(error))


_HEALTH_METHODS = "/grpc.health.v1.Health/"


class UnreadHealthInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Answers health checks, which need no key, without their messages.

    A message may be as long as that of any other call, and gRPC would keep it in memory. So every
    service that a check may name has the status of the gateway.
    """

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        """The handler of the method; that of a health check reads nothing."""
        handler = await continuation(details)
        if handler is None or not details.method.startswith(_HEALTH_METHODS):
            return handler
        method = handler.unary_unary or handler.unary_stream

        async def answer(_: Any, context: Any) -> Any:
            return await method(health_pb2.HealthCheckRequest(), context)

        create = (
            grpc.stream_unary_rpc_method_handler
            if handler.unary_unary
            else grpc.stream_stream_rpc_method_handler
        )
        return create(answer, handler.request_deserializer, handler.response_serializer)


_SERVER_FAULT_CODES = frozenset(
    {"DATA_LOSS", "DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE", "UNKNOWN"}
)
"""Status codes of failures that are not the caller's fault."""


class MetricsInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Measures every method of the server, including health and reflection."""

    def __init__(self, metrics: CallMetrics) -> None:
        self._metrics = metrics

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        """The measured handler of the method; None if there is no such method."""
        handler = await continuation(details)
        if handler is None:
            return None
        name = details.method.rpartition("/")[2]
        types = (handler.request_deserializer, handler.response_serializer)
        if handler.unary_unary:
            observed = self._observe_unary(name, handler.unary_unary)
            return grpc.unary_unary_rpc_method_handler(observed, *types)
        if handler.stream_unary:
            observed = self._observe_unary(name, handler.stream_unary)
            return grpc.stream_unary_rpc_method_handler(observed, *types)
        if handler.unary_stream:
            writes_directly = not isasyncgenfunction(handler.unary_stream)
            # A method that writes to the context itself returns once, at its end.
            wrap = self._observe_unary if writes_directly else self._observe_stream
            observed = wrap(name, handler.unary_stream)
            return grpc.unary_stream_rpc_method_handler(observed, *types)
        if handler.stream_stream and isasyncgenfunction(handler.stream_stream):
            observed = self._observe_stream(name, handler.stream_stream)
            return grpc.stream_stream_rpc_method_handler(observed, *types)
        return handler

    def _observe_unary(self, name: str, method: Callable[[Any, Any], Awaitable[Any]]) -> Any:
        async def observed(request: Any, context: Any) -> Any:
            with self._metrics.trace_call(name, _extract_trace_headers(context)) as outcome:
                try:
                    async with abort_on_error(context):
                        return await method(_check_parsed(request), context)
                finally:
                    _record_outcome(outcome, context)

        return observed

    def _observe_stream(self, name: str, method: Callable[[Any, Any], AsyncIterator[Any]]) -> Any:
        async def observed(request: Any, context: Any) -> AsyncIterator[Any]:
            outcome = CallOutcome()
            with self._metrics.count_call(name, outcome):
                try:
                    async with abort_on_error(context):
                        async for message in method(_check_parsed(request), context):
                            yield message
                finally:
                    _record_outcome(outcome, context)

        return observed


def _check_parsed(request: Any) -> Any:
    """The request, or the stream of them. Raises the error that a message was parsed to."""
    if isinstance(request, ReverieError):
        raise request
    return _check_each(request) if isinstance(request, AsyncIterator) else request


async def _check_each(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _check_parsed(request)


def _extract_trace_headers(context: Any) -> dict[str, str]:
    metadata = dict(context.invocation_metadata() or ())
    return {key: metadata[key] for key in ("traceparent", "tracestate") if key in metadata}


def _record_outcome(outcome: CallOutcome, context: Any) -> None:
    code = context.code()
    if isinstance(code, grpc.StatusCode) and code is not grpc.StatusCode.OK:
        outcome.code, outcome.failed = code.name, code.name in _SERVER_FAULT_CODES
