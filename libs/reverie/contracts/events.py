"""Events: streams, subjects and bodies on the message bus, and as clients receive them.

Events are hints and carry no content. Consumers compare versions with the stored state, so that
a repeated or late event is harmless.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from reverie.contracts.base import ResponseBody
from reverie.domain.core.ids import new_id

MEMORY_STREAM = "MEMORY"
DREAM_STREAM = "DREAM"
GIT_STREAM = "GIT"
TURN_STREAM = "TURN"
ENGINE_STREAM = "ENGINE"
DEAD_LETTER_STREAM = "DEAD"
ADVISORY_STREAM = "ADVISORY"


MEMORY_EVENTS: Final = (
    "remembered",
    "enriched",
    "edited",
    "superseded",
    "forgotten",
    "approved",
    "pinned",
    "unpinned",
    "archived",
    "restored",
    "promoted",
    "linked",
    "unlinked",
    "merged",
    "contradicted",
    "staled",
    "cleared",
    "task",
    "digesting",
    "digested",
)
"""The events of a memory. `remembered` also starts the enrichment of the memory.

`digesting` reports the progress of a dream over a scope, and `digested` reports its end.
"""


class BusEvent(BaseModel):
    """A message on the bus. `tenant` is the internal number; the subject contains the tenant's
    name.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    v: Literal[1] = 1
    tenant: int


class MemoryEvent(BusEvent):
    """An event of a memory: one of `MEMORY_EVENTS`. For an edge, `id` is the id of the edge."""

    id: UUID
    version: int


class GitEvent(BusEvent):
    """A git change was stored; `id` is its row, which holds the files.

    Without `id`, `memory` received its anchors after changes that may concern it.
    """

    id: UUID | None = None
    memory: UUID | None = None
    project: str


BULK_HEADERS: Final = {"Reverie-Bulk": "1"}
"""Headers of the events of a write that nobody waits for: a batch, an import, a digest."""


def memory_subject(tenant: str, event: str, headers: Mapping[str, str] | None = None) -> str:
    """`memory.<tenant>.<event>`, and `memory.<tenant>.bulk.remembered` with `BULK_HEADERS`.

    Two subjects, so that what is written one by one is enriched before what comes in bulk.
    """
    is_bulk = event == "remembered" and BULK_HEADERS.keys() <= (headers or {}).keys()
    return f"memory.{tenant}.bulk.{event}" if is_bulk else f"memory.{tenant}.{event}"


def dream_subject(tenant: str, scope: str) -> str:
    """`dream.<tenant>.<scope hash>.requested`"""
    return f"dream.{tenant}.{hashlib.sha256(scope.encode()).hexdigest()[:16]}.requested"


MAINTENANCE_SUBJECT: Final = "dream.ALL.maintenance.requested"
"""Belongs to no tenant. It wakes a worker, which selects a tenant whose maintenance is due."""


def git_subject(tenant: str, project: str) -> str:
    """`git.<tenant>.<project>.changed`; `project` is a slug."""
    return f"git.{tenant}.{project}.changed"


def turn_subject(tenant: str, turn: UUID) -> str:
    """`turn.<tenant>.<turn>.requested`: a turn of the engine waits for a worker."""
    return f"turn.{tenant}.{turn}.requested"


def is_position(text: str) -> bool:
    """Whether a text, such as `Last-Event-ID`, is a position in a stream."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def engine_subject(tenant: str, group: UUID) -> str:
    """`engine.<tenant>.<group>.event`: what happens in the turns of a group."""
    return f"engine.{tenant}.{group}.event"


class OutgoingEvent(BaseModel):
    """A stored event for the bus. `id` is the outbox row and the `Nats-Msg-Id`."""

    model_config = ConfigDict(frozen=True)

    id: UUID
    subject: str
    payload: str
    headers: dict[str, str]


def build_outgoing_event(
    tenant: int,
    subject: str,
    body: Mapping[str, object],
    headers: Mapping[str, str],
    id: UUID | None = None,
) -> OutgoingEvent:
    """An event in the form of the outbox. `id` is its row; the default is a new id."""
    payload = json.dumps({**body, "v": 1, "tenant": tenant}, separators=(",", ":"))
    return OutgoingEvent(id=id or new_id(), subject=subject, payload=payload, headers=dict(headers))


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
