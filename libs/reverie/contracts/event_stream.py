"""Memory events as clients receive them: pages of events, and a parser of server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from reverie.contracts.base import ResponseBody


class MemoryEventBody(ResponseBody):
    """Something happened at a place; `data` names the memory, its scope and kind, no content."""

    event: str
    cursor: str
    data: dict[str, Any] = Field(default_factory=dict)


class EventPage(ResponseBody):
    """`GET /v1/events/page`: in order. `place`: the `after` of the next page, now or later.

    `gap`: events since `after` are lost for good, what is known should be read anew; `more`: the
    next page may be asked for at once.
    """

    items: list[MemoryEventBody]
    next: str
    gap: bool = False
    has_more: bool = False


@dataclass(frozen=True)
class ServerSentEvent:
    """One event. `id`: the place to resume from; a sign of life has no `data`."""

    id: str
    event: str
    data: str


async def read_server_sent_events(lines: AsyncIterable[bytes]) -> AsyncIterator[ServerSentEvent]:
    """The events of a stream; what a break cut off is not told."""
    event_id, event_name, data = "", "", []
    async for raw in lines:
        field, _, value = raw.decode("utf-8", "replace").rstrip("\r\n").partition(":")
        value = value.removeprefix(" ")
        if field == "id":
            event_id = value
        elif field == "event":
            event_name = value
        elif field == "data":
            data.append(value)
        elif not field and not value and not raw.strip():
            yield ServerSentEvent(event_id, event_name or "message", "\n".join(data))
            event_name, data = "", []
