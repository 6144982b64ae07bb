"""Server-sent events, read line by line."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Sent:
    """One event. `id`: the place to resume from; a sign of life has no `data`."""

    id: str
    event: str
    data: str


async def sent_in(lines: AsyncIterable[bytes]) -> AsyncIterator[Sent]:
    """The events of a stream; what a break cut off is not told."""
    place, name, data = "", "", []
    async for raw in lines:
        field, _, value = raw.decode("utf-8", "replace").rstrip("\r\n").partition(":")
        value = value.removeprefix(" ")
        if field == "id":
            place = value
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif not field and not value and not raw.strip():
            yield Sent(place, name or "message", "\n".join(data))
            name, data = "", []
