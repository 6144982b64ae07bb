"""Memory events as clients receive them: pages of events, and a parser of server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from reverie.contracts.base import ResponseBody


class MemoryEventBody(ResponseBody):
    """An event at a `cursor`.

    `data` names the memory, its scope and its kind. It contains no content.
    """

    event: str
    cursor: str
    data: dict[str, Any] = Field(default_factory=dict)


class EventPage(ResponseBody):
    """`GET /v1/events/page`: events in order. `next` is the `after` of the next request.

    `gap` means that events after `after` are lost; read the state again. `has_more` means that
    another page is available now.
    """

    items: list[MemoryEventBody]
    next: str
    gap: bool = False
    has_more: bool = False


@dataclass(frozen=True)
class ServerSentEvent:
    """A server-sent event. `id` is the cursor to resume from. A heartbeat has no `data`."""

    id: str
    event: str
    data: str


async def read_server_sent_events(lines: AsyncIterable[bytes]) -> AsyncIterator[ServerSentEvent]:
    """Yields the events of a stream. An incomplete last event is dropped."""
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
