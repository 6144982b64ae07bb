"""Turns unary gRPC calls into REST calls of the gateway and encodes the answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import grpc
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar
from google.protobuf.json_format import MessageToDict, ParseDict

from reverie.contracts.operations import PATH_VARIABLE, FieldValues, Operation
from reverie.mcp.rest_calls import RestCallError, RestClient, RestQuery, call_rest_any, encode_query
from reverie.runtime.observability.http_client_metrics import HttpClientMetrics
from reverie_services.recall.grpc.errors import abort_with_problem
from reverie_services.recall.loopback import call_gateway

_FORWARDED_METADATA = ("authorization", "traceparent", "user-agent", "idempotency-key")

UnaryHandler = Callable[[Any, Any], Awaitable[Any]]


@dataclass(frozen=True)
class GatewayConnection:
    """The gateway, as its other door reaches it."""

    http: ClientSession
    url: str

    def create_rest_client(self, context: Any) -> RestClient:
        """REST calls for whoever made the call of `context`."""
        metadata_headers = build_headers(context)

        async def call(
            method: str,
            path: str,
            query: RestQuery | None = None,
            body: Any = None,
            headers: Mapping[str, str] | None = None,
        ) -> tuple[int, Any]:
            url = f"{self.url}{path}{encode_query(query)}"
            return await call_gateway(
                self.http, method, url, body, {**metadata_headers, **(headers or {})}
            )

        return call


def create_handler(
    gateway: GatewayConnection, operation: Operation, response_type: type[Any]
) -> UnaryHandler:
    """What answers an operation with a message of the type `response_type`."""

    async def handle(request: Any, context: Any) -> Any:
        fields = decode_fields(request)
        extra_headers = _pop_header_fields(operation, fields)
        url = PATH_VARIABLE.sub(
            lambda name: _encode_path_segment(fields.pop(name[1], "")), operation.path
        )
        query, body = operation.split_fields(fields)
        request_body = body if body or operation.method == "POST" else None

        try:
            result = await call_rest_any(
                gateway.create_rest_client(context),
                operation.method,
                url,
                query,
                request_body,
                extra_headers,
            )
            return encode_message(response_type, _wrap_alternatives(operation, result))
        except RestCallError as error:
            await abort_with_problem(context, error.problem)

    return handle


def decode_fields(request: Any) -> FieldValues:
    """What was set of a request, by the names of REST."""
    fields: FieldValues = _restore_integers(
        MessageToDict(request, preserving_proto_field_name=True)
    )
    return fields


def _restore_integers(value: Any) -> Any:
    """The value with whole numbers as such: a `Struct` knows no others than doubles."""
    if isinstance(value, dict):
        return {name: _restore_integers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_restore_integers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def encode_message(message_type: type[Any], body: FieldValues) -> Any:
    """An answer of REST as a message; fields that it has not are left out."""
    return ParseDict(body, message_type(), ignore_unknown_fields=True)


def build_headers(context: Any) -> dict[str, str]:
    """What of the metadata goes on as headers: the key before all."""
    metadata = dict(context.invocation_metadata() or ())
    return {
        name: metadata[name] for name in _FORWARDED_METADATA if isinstance(metadata.get(name), str)
    }


def open_session(timeout: float, client_metrics: HttpClientMetrics) -> ClientSession:
    """Connections to the gateway itself. `timeout`: what a call may take at most."""
    return ClientSession(
        timeout=ClientTimeout(total=timeout),
        cookie_jar=DummyCookieJar(),
        trace_configs=[client_metrics.trace_config()],
    )


def create_unary_handler(
    gateway: GatewayConnection,
    operation: Operation,
    request_type: type[Any],
    response_type: type[Any],
) -> Any:
    """The call, as the server takes it."""
    return grpc.unary_unary_rpc_method_handler(
        create_handler(gateway, operation, response_type),
        request_deserializer=request_type.FromString,
        response_serializer=response_type.SerializeToString,
    )


def _pop_header_fields(operation: Operation, fields: FieldValues) -> dict[str, str]:
    """The headers that some fields stand for."""
    extra_headers = {}
    if key := fields.pop("idempotency_key", None):
        extra_headers["Idempotency-Key"] = key
    if operation.uses_if_match and "version" in fields:
        extra_headers["If-Match"] = f'"{fields.pop("version")}"'
    return extra_headers


def _wrap_alternatives(operation: Operation, result: FieldValues) -> FieldValues:
    """An answer with the alternatives of an item told apart."""
    if operation.name != "remember_batch":
        return result
    return {
        "items": [{"problem" if "code" in item else "remembered": item} for item in result["items"]]
    }


def _encode_path_segment(value: object) -> str:
    """A part of a path; one that is missing names nothing."""
    return quote(str(value), safe="") or "-"
