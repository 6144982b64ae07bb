"""HTTP calls of the gateway to itself, made for its gRPC and MCP interfaces."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientSession

from reverie.domain.core.errors import PayloadTooLarge, Unavailable
from reverie.runtime.observability.tracing import inject_headers

MAX_FILE_BYTES = 256 * 1024
"""Of a file that is answered in one piece."""


async def call_gateway(
    http: ClientSession, method: str, url: str, body: Any, headers: Mapping[str, str]
) -> tuple[int, Any]:
    """The status and the body: decoded JSON, or text where it is none.

    A `body` that is a text is sent as JSON lines. Raises `Unavailable` where no answer comes in
    time, `PayloadTooLarge` where a file is more than fits into one answer.
    """
    request_headers = {**headers, **inject_headers()}
    data = None
    if body is not None:
        is_jsonl = isinstance(body, str)
        request_headers["Content-Type"] = "application/x-ndjson" if is_jsonl else "application/json"
        data = io.BytesIO((body if is_jsonl else json.dumps(body)).encode())
    try:
        async with http.request(method, url, headers=request_headers, data=data) as response:
            return response.status, _decode_body(await _read_body(response))
    except (ClientError, TimeoutError, OSError) as error:
        raise Unavailable("the gateway", "it did not answer itself in time") from error


async def _read_body(response: ClientResponse) -> bytes:
    """The whole body; of a file, as much as one answer may hold."""
    if response.content_type.endswith("json"):
        return await response.read()
    data = await response.content.read(MAX_FILE_BYTES + 1)
    while len(data) <= MAX_FILE_BYTES and (chunk := await response.content.read(MAX_FILE_BYTES)):
        data += chunk
    if len(data) > MAX_FILE_BYTES:
        raise PayloadTooLarge(
            "the file", len(data), MAX_FILE_BYTES, "use `reverie export`, or fewer scopes"
        )
    return data


def _decode_body(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode("utf-8", "replace")
