"""Streaming calls: the event stream, export and import."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Literal

from reverie.client.base import ClientBase, LazyModule, drop_none

if TYPE_CHECKING:
    from reverie.contracts import export_import as of_export_import
else:
    of_export_import = LazyModule("reverie.contracts.export_import")


@dataclass(frozen=True)
class StreamEvent:
    """An event; `cursor` is the position to resume from.

    The event `reset` means that events are lost permanently: read the state again.
    """

    event: str
    cursor: str
    data: dict[str, Any]


class StreamCalls(ClientBase):
    """Calls that go on for long."""

    async def stream_events(
        self,
        *,
        scope: Sequence[str] | None = None,
        kind: Sequence[str] | None = None,
        event: Sequence[str] | None = None,
        after: str | None = None,
    ) -> AsyncIterator[StreamEvent]:
        """Yields events of memories without end, from now on or from the position `after`.

        A broken connection is reopened and resumes. Raises `Unavailable` once as many attempts as
        the client allows have failed in a row.
        """
        query = drop_none(scope=scope, kind=kind, event=event)
        async for message in self._follow_events("/v1/events", query, after):
            yield StreamEvent(message.event, message.id, json.loads(message.data))

    async def export_memories(
        self,
        *,
        format: Literal["jsonl", "markdown", "obsidian"] = "jsonl",
        scope: Sequence[str] | None = None,
    ) -> AsyncIterator[bytes]:
        """Exports all that the key may read, in pieces: JSON lines, or a tar of Markdown files.

        Raises `Unavailable` if the export breaks off: the received data is incomplete then.
        """
        query = drop_none(format=format, scope=scope)
        async with self._transport.stream("GET", "/v1/export", query) as response:
            async for piece in response.aiter_bytes():
                yield piece

    async def import_memories(
        self,
        source: str | bytes | IO[bytes],
        *,
        strategy: Literal["merge", "replace", "skip"] = "merge",
        scope: str | None = None,
        dry_run: bool = False,
        media_type: str = "application/x-ndjson",
        timeout_seconds: float = 3600.0,
    ) -> of_export_import.ImportResponse:
        """Imports an export: text, bytes, or a file that is read while it is sent.

        `media_type`: its media type, also `text/markdown` or `application/x-tar`.
        `timeout_seconds`: the limit of the call. It is sent once; sending it again repeats no
        change.
        """
        query = drop_none(strategy=strategy, scope=scope, dry_run=dry_run)
        body = source.encode() if isinstance(source, str) else source
        response = await self._transport.upload(
            "/v1/import", query, body, media_type, timeout_seconds
        )
        return of_export_import.ImportResponse.model_validate(response.body)
