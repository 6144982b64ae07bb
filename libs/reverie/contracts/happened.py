"""Bodies of what happened to memories, as who asks now and then is told."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from reverie.contracts.base import Answer


class Happened(Answer):
    """Something happened at a place; `data` names the memory, its scope and kind, no content."""

    event: str
    place: str
    data: dict[str, Any] = Field(default_factory=dict)


class EventPage(Answer):
    """`GET /v1/events/page`: in order. `place`: the `after` of the next page, now or later.

    `gap`: events since `after` are lost for good, what is known should be read anew; `more`: the
    next page may be asked for at once.
    """

    items: list[Happened]
    place: str
    gap: bool = False
    more: bool = False
