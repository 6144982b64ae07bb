"""Memory of agents of Google's Agent Development Kit.

`Runner(..., memory_service=ReverieMemoryService(client))`
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai.types import Content, Part

from reverie.adapters.common import MAX_MEMORIES, check_stored, split_batches
from reverie.client import AsyncReverie
from reverie.client.errors import ApiError

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

ANY_STATUS = ("active", "archived", "superseded")


class ReverieMemoryService(BaseMemoryService):
    """Each event with text is a memory in `user/<user>`, found by this app and user alone.

    What was added before, or was deleted, is not added again. `limit`: memories of a search.
    """

    def __init__(self, client: AsyncReverie, *, limit: int = 10) -> None:
        self._client, self._limit = client, limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Adds the events of a session that are new."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Adds new events that have text; pictures and tool calls are left out."""
        items = [
            {
                **_identity(app_name, event.id),
                "content": text,
                "kind": "historical",
                "metadata": {
                    **(custom_metadata or {}),
                    "author": event.author,
                    "role": event.content.role,
                    "timestamp": datetime.fromtimestamp(event.timestamp, UTC).isoformat(),
                },
            }
            for event in events
            if event.content and (text := _text_of(event.content))
        ]
        place = _place(app_name, user_id)
        tag = _shorten(f"session:{session_id}", 64)
        known = self._client.list_memories(scope=place["scope"], tag=tag, status=ANY_STATUS)
        keys = {memory.key async for memory in known}
        new = [item for item in items if item["key"] not in keys]
        await self._store([{**item, **place, "tags": [*place["tags"], tag]} for item in new])

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Adds statements as they are, each once."""
        items = [
            {
                **_place(app_name, user_id),
                **(_identity(app_name, entry.id) if entry.id else {}),
                "content": _text_of(entry.content),
                "metadata": {
                    **(custom_metadata or {}),
                    **entry.custom_metadata,
                    "author": entry.author,
                    "role": entry.content.role,
                    "timestamp": entry.timestamp,
                },
            }
            for entry in memories
        ]
        await self._store(items)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """The memories of this user in this app that are nearest to a query, the best first."""
        if not query.strip():
            return SearchMemoryResponse()
        place = _place(app_name, user_id)
        found = await self._client.recall(
            query, scopes=[place["scope"]], tags=place["tags"], limit=self._limit
        )
        entries = await asyncio.gather(*(self._entry(hit.id) for hit in found.memories))
        return SearchMemoryResponse(memories=entries)

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Forgets a memory that a search gave; one of another user or app is left alone.

        An archived memory without its text keeps the key, so that the event is not added again.
        """
        if not memory_id:
            return
        place = _place(app_name, user_id)
        try:
            memory = await self._client.get_memory(memory_id)
        except ApiError as error:
            if error.status == 404:
                return
            raise
        if not set(place["tags"]) <= set(memory.tags):
            return
        await self._client.forget(memory.id)
        if memory.key:
            kept = await self._client.remember(
                "Deleted.", scope=place["scope"], key=memory.key, tags=memory.tags, kind=memory.kind
            )
            await self._client.archive(kept.id)

    async def _entry(self, memory: UUID) -> MemoryEntry:
        body = await self._client.get_memory(memory)
        metadata = dict(body.metadata)
        role, author = metadata.pop("role", None), metadata.pop("author", None)
        timestamp = metadata.pop("timestamp", None) or body.created_at.isoformat()
        return MemoryEntry(
            id=str(body.id),
            content=Content(role=role, parts=[Part(text=body.content)]),
            author=author,
            timestamp=timestamp,
            custom_metadata=metadata,
        )

    async def _store(self, items: Sequence[Mapping[str, Any]]) -> None:
        for batch in split_batches(items, MAX_MEMORIES):
            check_stored(await self._client.remember_batch(batch))


def _place(app: str, user: str) -> dict[str, Any]:
    """The scope of a user, and the tag that tells apps and users apart."""
    tag = _shorten(f"adk:{quote(app, safe='')}/{user}", 64)
    return {"scope": f"user/{user.replace('/', '-')}", "tags": [tag]}


def _identity(app: str, id: str) -> dict[str, str]:
    """The key of a memory with an id: added again, it is the same memory."""
    return {"key": _shorten(f"{app}/{id}", 200), "supersede_reason": "added again"}


def _shorten(name: str, length: int) -> str:
    """The name itself, or as much of it as fits, with its hash."""
    if len(name) <= length:
        return name
    digest = sha256(name.encode()).hexdigest()[:24]
    return f"{name[: length - 25]}-{digest}"


def _text_of(content: Content) -> str:
    """The words of a content, without its pictures and calls of tools."""
    return " ".join(part.text for part in content.parts or () if part.text).strip()
