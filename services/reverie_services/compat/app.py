"""Mounts `/compat`: translates calls of mem0's and Hindsight's clients to calls of this gateway.

The calls are made with the key of the caller: rights, redaction and limits are those of any call.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from multidict import CIMultiDict

from reverie.contracts.headers import USER_HEADER
from reverie.domain.core.errors import MalformedInput, PayloadTooLarge
from reverie.runtime.auth.authentication import Authenticator
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.exchange import IncomingRequest, OutgoingResponse, RequestHandler
from reverie.runtime.service import MountFactory
from reverie_services.compat.calls import CompatCall, CompatRefusal
from reverie_services.in_process_rest import InProcessRestClient

PREFIX = "/compat"


def mount_compat(body_limit: int, request_timeout: float) -> MountFactory:
    """The mount. `body_limit`: the most bytes of a body. `request_timeout`: seconds to send it."""

    def create_handler(dispatcher: Dispatcher, authenticate: Authenticator) -> RequestHandler:
        async def handle(request: IncomingRequest) -> OutgoingResponse:
            own_headers = _own_headers(request.headers)
            # Each call of this gateway that answers it has this limit, too.
            async with asyncio.timeout(request_timeout):
                # Nothing is read before the key is checked.
                await authenticate(own_headers)
                body = await _read_body(request, body_limit)
            # Loaded with the first call, because most gateways get none.
            from reverie_services.compat import hindsight, mem0

            system, _, path = request.url.path.removeprefix(f"{PREFIX}/").partition("/")
            answer = {"mem0": mem0.answer, "hindsight": hindsight.answer}.get(system)
            call = CompatCall(
                request.method,
                f"/{path.rstrip('/')}",
                request.url.query,
                body,
                InProcessRestClient(dispatcher, own_headers),
            )
            if answer is None:
                raise call.no_route()
            try:
                return _json_response(200, await answer(call))
            except CompatRefusal as refused:
                return _json_response(refused.status, refused.problem)

        return handle

    return create_handler


def _own_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of the key and the user; mem0's clients use another scheme for the key."""
    own = {name: headers[name] for name in ("User-Agent", USER_HEADER) if name in headers}
    if "Authorization" in headers:
        scheme, _, key = headers["Authorization"].partition(" ")
        own["Authorization"] = f"Bearer {key}" if scheme == "Token" else headers["Authorization"]
    return own


async def _read_body(request: IncomingRequest, limit: int) -> Mapping[str, Any]:
    data = bytearray()
    async for chunk in request.chunks:
        data += chunk
        if len(data) > limit:
            raise PayloadTooLarge("the body", len(data), limit, "send less at once")
    try:
        body = json.loads(data) if data else {}
    except (ValueError, RecursionError) as error:
        raise MalformedInput("the body is not JSON") from error
    if not isinstance(body, dict):
        raise MalformedInput("the body is not a JSON object")
    return body


def _json_response(status: int, body: Any) -> OutgoingResponse:
    headers = CIMultiDict({"Content-Type": "application/json"})
    return OutgoingResponse(status, headers, json.dumps(body).encode())
