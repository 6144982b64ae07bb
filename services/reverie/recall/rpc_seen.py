"""Calls over gRPC as they are seen: a span around each, counted and timed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from inspect import isasyncgenfunction
from typing import Any

import grpc

from reverie.recall.rpc_errors import told
from reverie.runtime.call_meters import CallMeters, Outcome

_OURS = frozenset({"DATA_LOSS", "DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE", "UNKNOWN"})
"""The codes of what is no fault of who called."""


class Seen(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Stands before every method of the server, also those of health and reflection."""

    def __init__(self, meters: CallMeters) -> None:
        self._meters = meters

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        """The method's handler, seen; None where there is no such method."""
        handler = await continuation(details)
        if handler is None:
            return None
        name = details.method.rpartition("/")[2]
        types = (handler.request_deserializer, handler.response_serializer)
        if handler.unary_unary:
            seen = self._unary(name, handler.unary_unary)
            return grpc.unary_unary_rpc_method_handler(seen, *types)
        if handler.stream_unary:
            seen = self._unary(name, handler.stream_unary)
            return grpc.stream_unary_rpc_method_handler(seen, *types)
        if handler.unary_stream:
            writes = not isasyncgenfunction(handler.unary_stream)
            # One that writes to the call itself answers once, when it is over.
            stream = self._unary if writes else self._stream
            seen = stream(name, handler.unary_stream)
            return grpc.unary_stream_rpc_method_handler(seen, *types)
        return handler

    def _unary(self, name: str, behaviour: Callable[[Any, Any], Awaitable[Any]]) -> Any:
        async def seen(request: Any, context: Any) -> Any:
            with self._meters.call(name, _carried(context)) as outcome:
                try:
                    async with told(context):
                        return await behaviour(request, context)
                finally:
                    _judge(outcome, context)

        return seen

    def _stream(self, name: str, behaviour: Callable[[Any, Any], AsyncIterator[Any]]) -> Any:
        async def seen(request: Any, context: Any) -> AsyncIterator[Any]:
            outcome = Outcome()
            with self._meters.open(name, outcome):
                try:
                    async with told(context):
                        async for one in behaviour(request, context):
                            yield one
                finally:
                    _judge(outcome, context)

        return seen


def _carried(context: Any) -> dict[str, str]:
    given = dict(context.invocation_metadata() or ())
    return {key: given[key] for key in ("traceparent", "tracestate") if key in given}


def _judge(outcome: Outcome, context: Any) -> None:
    code = context.code()
    if isinstance(code, grpc.StatusCode) and code is not grpc.StatusCode.OK:
        outcome.code, outcome.failed = code.name, code.name in _OURS
