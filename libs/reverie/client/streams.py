"""Streaming calls: the event stream, export and import."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Literal

from reverie.client.base import ClientBase, LazyModule, drop_none
from reverie.domain.core.errors import Unavailable

if TYPE_CHECKING:
    from reverie.contracts import export_import as of_export_import
else:
    of_export_import = LazyModule("reverie.contracts.export_import")

_MAX_RECONNECT_DELAY = 5.0


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
        from reverie.client.connections import split_lines
        from reverie.contracts.events import read_server_sent_events

        query, failures = drop_none(scope=scope, kind=kind, event=event), 0
        while True:
            try:
                headers = {"Last-Event-ID": after} if after else {}
                async with self._transport.stream("GET", "/v1/events", query, headers) as stream:
                    async for message in read_server_sent_events(split_lines(stream)):
                        after, failures = message.id, 0
                        if message.data:
                            yield StreamEvent(message.event, message.id, json.loads(message.data))
            except Unavailable:
                failures += 1
                if failures >= self._transport.max_attempts:
                    raise
            await asyncio.sleep(random.uniform(0.05, min(0.2 * 2**failures, _MAX_RECONNECT_DELAY)))  # noqa: S311

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
        async with self._transport.stream("GET", "/v1/export", query) as stream:
            async for piece in stream:
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
