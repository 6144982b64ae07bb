"""REST calls that the gateway's other doors make to the gateway itself, as whoever asks.

So the rules are the same whatever the door.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import ClientError, ClientSession

from reverie.domain.errors import Unavailable
from reverie.runtime.telemetry import inject_headers


async def ask_own(
    http: ClientSession, method: str, where: str, body: Any, headers: Mapping[str, str]
) -> tuple[int, Any]:
    """The status and the decoded body. Raises `Unavailable` where no answer comes in time."""
    sent = {**headers, **inject_headers()}
    try:
        async with http.request(method, where, json=body, headers=sent) as answer:
            found = await answer.json(content_type=None) if await answer.read() else None
            return answer.status, found
    except (ClientError, TimeoutError, OSError) as error:
        raise Unavailable("the gateway", "it did not answer itself in time") from error
