"""Calls over gRPC that are one REST call each: how a request becomes it, and its answer comes back.

The table of operations is the whole difference between the two doors.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import grpc
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar
from google.protobuf.json_format import MessageToDict, ParseDict

from reverie.contracts.operations import VARIABLE, Fields, Operation
from reverie.mcp.rest import Failed, Query, Rest, ask_any, parameters
from reverie.recall.own import ask_own
from reverie.recall.rpc_errors import refuse
from reverie.runtime.client_meters import ClientMeters

_SENT_ON = ("authorization", "traceparent", "user-agent", "idempotency-key")

Handler = Callable[[Any, Any], Awaitable[Any]]


@dataclass(frozen=True)
class Own:
    """The gateway, as its other door reaches it."""

    http: ClientSession
    url: str

    def rest(self, context: Any) -> Rest:
        """REST calls for whoever made the call of `context`."""
        own = headers_of(context)

        async def call(
            method: str,
            path: str,
            query: Query | None = None,
            body: Any = None,
            headers: Mapping[str, str] | None = None,
        ) -> tuple[int, Any]:
            where = f"{self.url}{path}{parameters(query)}"
            return await ask_own(self.http, method, where, body, {**own, **(headers or {})})

        return call


def handler(own: Own, one: Operation, answer: type[Any]) -> Handler:
    """What answers an operation with a message of the type `answer`."""

    async def handle(request: Any, context: Any) -> Any:
        fields = fields_of(request)
        more = _held(one, fields)
        where = VARIABLE.sub(lambda name: _part(fields.pop(name[1], "")), one.path)
        query, body = one.sent(fields)
        sent = body if body or one.method == "POST" else None

        try:
            found = await ask_any(own.rest(context), one.method, where, query, sent, more)
            return message(answer, _told(one, found))
        except Failed as failed:
            await refuse(context, failed.problem)

    return handle


def fields_of(request: Any) -> Fields:
    """What was set of a request, by the names of REST."""
    found: Fields = _whole(MessageToDict(request, preserving_proto_field_name=True))
    return found


def _whole(value: Any) -> Any:
    """The value with whole numbers as such: a `Struct` knows no others than doubles."""
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def message(kind: type[Any], body: Fields) -> Any:
    """An answer of REST as a message; fields that it has not are left out."""
    return ParseDict(body, kind(), ignore_unknown_fields=True)


def headers_of(context: Any) -> dict[str, str]:
    """What of the metadata goes on as headers: the key before all."""
    given = dict(context.invocation_metadata() or ())
    return {name: given[name] for name in _SENT_ON if isinstance(given.get(name), str)}


def session(seconds: float, meters: ClientMeters) -> ClientSession:
    """Connections to the gateway itself. `seconds`: what a call may take at most."""
    return ClientSession(
        timeout=ClientTimeout(total=seconds),
        cookie_jar=DummyCookieJar(),
        trace_configs=[meters.trace()],
    )


def unary(own: Own, one: Operation, asked: type[Any], answer: type[Any]) -> Any:
    """The call, as the server takes it."""
    return grpc.unary_unary_rpc_method_handler(
        handler(own, one, answer),
        request_deserializer=asked.FromString,
        response_serializer=answer.SerializeToString,
    )


def _held(one: Operation, fields: Fields) -> dict[str, str]:
    """The headers that some fields stand for."""
    more = {}
    if key := fields.pop("idempotency_key", None):
        more["Idempotency-Key"] = key
    if one.tagged and "version" in fields:
        more["If-Match"] = f'"{fields.pop("version")}"'
    return more


def _told(one: Operation, found: Fields) -> Fields:
    """An answer with the alternatives of an item told apart."""
    if one.name != "remember_batch":
        return found
    return {"items": [{"problem" if "code" in it else "remembered": it} for it in found["items"]]}


def _part(value: object) -> str:
    """A part of a path; one that is missing names nothing."""
    return quote(str(value), safe="") or "-"
