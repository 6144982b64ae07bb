"""Generated from `streams.py`: the same calls for synchronous code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Literal

from reverie.client.streams import StreamEvent
from reverie.client.sync_base import SyncClientBase

if TYPE_CHECKING:
    from reverie.contracts import export_import as of_carry


class SyncStreamCalls(SyncClientBase):
    """Calls that go on for long."""

    def stream_events(
        self,
        *,
        scope: Sequence[str] | None = None,
        kind: Sequence[str] | None = None,
        event: Sequence[str] | None = None,
        after: str | None = None,
    ) -> Iterator[StreamEvent]:
        """What happens to memories, from now on or from the place `after`, without an end.

        A connection that breaks is made anew and goes on where it was. Raises `Unavailable` once
        as many tries as the client has failed in a row.
        """
        return self._portal.iterate(
            self._reverie.stream_events(scope=scope, kind=kind, event=event, after=after)
        )

    def export_memories(
        self,
        *,
        format: Literal["jsonl", "markdown", "obsidian"] = "jsonl",
        scope: Sequence[str] | None = None,
    ) -> Iterator[bytes]:
        """All that the key may read, in pieces: JSON lines, or a tar of Markdown files.

        Raises `Unavailable` where it breaks off: what came is not whole then.
        """
        return self._portal.iterate(self._reverie.export_memories(format=format, scope=scope))

    def import_memories(
        self,
        source: bytes | IO[bytes],
        *,
        strategy: Literal["merge", "replace", "skip"] = "merge",
        scope: str | None = None,
        dry_run: bool = False,
        media_type: str = "application/x-ndjson",
        timeout_seconds: float = 3600.0,
    ) -> of_carry.ImportResponse:
        """Takes in an export: bytes, or a file that is read while it is sent.

        `media_type`: its media type, `text/markdown` and `application/x-tar` too;
        `timeout_seconds`: what it may take. It is sent once; sent again, it changes nothing that
        it changed before.
        """
        return self._portal.run(
            self._reverie.import_memories(
                source,
                strategy=strategy,
                scope=scope,
                dry_run=dry_run,
                media_type=media_type,
                timeout_seconds=timeout_seconds,
            )
        )
