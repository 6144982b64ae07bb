"""REST calls that the gateway's other doors make to the gateway itself, as whoever asks.

So the rules are the same whatever the door.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientSession

from reverie.domain.errors import TooLarge, Unavailable
from reverie.runtime.telemetry import inject_headers

MOST_BYTES = 256 * 1024
"""Of a file that is answered in one piece."""


async def ask_own(
    http: ClientSession, method: str, where: str, body: Any, headers: Mapping[str, str]
) -> tuple[int, Any]:
    """The status and the body: decoded JSON, or text where it is none.

    A `body` that is a text is sent as JSON lines. Raises `Unavailable` where no answer comes in
    time, `TooLarge` where a file is more than fits into one answer.
    """
    sent = {**headers, **inject_headers()}
    data = None
    if body is not None:
        lines = isinstance(body, str)
        sent["Content-Type"] = "application/x-ndjson" if lines else "application/json"
        data = io.BytesIO((body if lines else json.dumps(body)).encode())
    try:
        async with http.request(method, where, headers=sent, data=data) as answer:
            return answer.status, _decoded(await _read(answer))
    except (ClientError, TimeoutError, OSError) as error:
        raise Unavailable("the gateway", "it did not answer itself in time") from error


async def _read(answer: ClientResponse) -> bytes:
    """The whole body; of a file, as much as one answer may hold."""
    if answer.content_type.endswith("json"):
        return await answer.read()
    data = await answer.content.read(MOST_BYTES + 1)
    while len(data) <= MOST_BYTES and (piece := await answer.content.read(MOST_BYTES)):
        data += piece
    if len(data) > MOST_BYTES:
        raise TooLarge("the file", len(data), MOST_BYTES, "use `reverie export`, or fewer scopes")
    return data


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode("utf-8", "replace")
