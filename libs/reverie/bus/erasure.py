"""Deletes the messages of an erased tenant or scope from the streams."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog

from reverie.bus.interface import MessageBus, StoredMessage
from reverie.bus.streams import STREAMS
from reverie.contracts import events
from reverie.domain.access.scopes import scope_matches
from reverie.domain.core.errors import Unavailable

PAGE = 500
MAX_CONCURRENT_DELETES = 50
_STREAM_STRIDE = 2**56
_EDGE_FIELDS = ("from", "to")
_RELATED_FIELDS = ("merged", "by", "into")

log = structlog.get_logger("reverie.bus")

ExistingMemoriesLookup = Callable[[Sequence[UUID]], Awaitable[set[UUID]]]


@dataclass(frozen=True)
class ErasureTarget:
    """What was erased: scope patterns, an optional project, and any memory that `find_existing`
    does not return."""

    patterns: Sequence[str]
    project: str | None
    find_existing: ExistingMemoriesLookup


def tenant_subjects(tenant: str) -> list[tuple[str, str]]:
    """Returns each stream with the filter of a tenant's messages.

    The tenant's name is the second token. The subject of a dead letter is `dead.<stream>` followed
    by that of the message; advisories contain no tenant. Dead letters come last, because messages
    that fail in the meantime go there.
    """
    filters = []
    for spec in STREAMS:
        prefixes = [s.split(".")[0] for s in spec.subjects if s.split(".")[1] == "*"]
        filters += [(spec.name, f"{prefix}.{tenant}.>") for prefix in prefixes]
    return [*filters, (events.DEAD_LETTER_STREAM, f"dead.*.*.{tenant}.>")]


async def erase_tenant_messages(bus: MessageBus, tenant: str) -> dict[str, int]:
    """Deletes all messages of a tenant; how many of each stream. Raises `Unavailable`."""
    deleted: dict[str, int] = {}
    for stream, subject in tenant_subjects(tenant):
        deleted[stream] = deleted.get(stream, 0) + await bus.purge(stream, subject)
    return deleted


async def erase_engine_events(bus: MessageBus, tenant: str, rows: Mapping[str, int]) -> None:
    """Deletes the events of a tenant's agents, if erasing changed `rows` of what they said.

    An event holds a piece of a text, so that no search finds the right ones. Out of reach of NATS,
    they are deleted by their age.
    """
    if any(name.startswith("engine_") for name in rows):
        try:
            await bus.purge(events.ENGINE_STREAM, f"engine.{tenant}.*.event")
        except Unavailable as error:
            log.warning("engine_events_kept", tenant=tenant, reason=str(error))


async def erase_scope_messages(
    bus: MessageBus, tenant: str, target: ErasureTarget, start: int = 0
) -> AsyncGenerator[tuple[Counter[str], int], None]:
    """Deletes a tenant's messages about erased data, dead letters included, a page at a time.

    Yields the deleted count by stream, and the token from which another call resumes
    (`start`; 0 is the beginning). A resume token is stream index * stride + sequence.
    Raises `Unavailable`.
    """
    first, after = divmod(start, _STREAM_STRIDE)
    for index, (stream, subject) in enumerate(tenant_subjects(tenant)):
        if index < first:
            continue
        while page := await bus.read_page(stream, subject, after, PAGE):
            after = page[-1].seq
            deleted = await _matching_sequences(page, target)
            for offset in range(0, len(deleted), MAX_CONCURRENT_DELETES):
                batch = deleted[offset : offset + MAX_CONCURRENT_DELETES]
                await asyncio.gather(*(bus.remove(stream, seq) for seq in batch))
            yield Counter({stream: len(deleted)}), index * _STREAM_STRIDE + after
        after = 0


async def _matching_sequences(page: Sequence[StoredMessage], target: ErasureTarget) -> list[int]:
    """Sequence numbers of messages that mention an erased memory, scope or project."""
    parsed = {
        message.seq: (body, _mentioned_memories(message.subject, body))
        for message in page
        for body in [_parse_body(message)]
    }
    mentioned = {memory for _, memories in parsed.values() for memory in memories}
    missing = mentioned - await target.find_existing(list(mentioned))
    return [
        seq
        for seq, (body, memories) in parsed.items()
        if missing & memories or _is_targeted(body, target)
    ]


def _is_targeted(body: dict[str, Any], target: ErasureTarget) -> bool:
    """Whether a message names an erased scope or the erased project."""
    scope, project = body.get("scope"), body.get("project")
    return (target.project is not None and project == target.project) or (
        isinstance(scope, str) and any(scope_matches(pattern, scope) for pattern in target.patterns)
    )


def _mentioned_memories(subject: str, body: dict[str, Any]) -> set[UUID]:
    """Memories named in an event: the ends of an edge, or its own id, and related memories."""
    tokens = subject.split(".")
    if tokens[2 if tokens[0] == "dead" else 0] != "memory":
        return set()
    fields = [name for name in _EDGE_FIELDS if name in body] or ["id"]
    return {
        memory_id
        for name in [*fields, *_RELATED_FIELDS]
        if (memory_id := _parse_uuid(body.get(name)))
    }


def _parse_uuid(value: object) -> UUID | None:
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _parse_body(message: StoredMessage) -> dict[str, Any]:
    """The message body as a dict; empty if it is not a JSON object."""
    try:
        parsed = json.loads(message.data)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
