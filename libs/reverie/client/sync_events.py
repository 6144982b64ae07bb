"""Written from `events.py`: the same calls, for code that does not await."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Literal

from reverie.client.events import Happened
from reverie.client.sync_base import SyncBase

if TYPE_CHECKING:
    from reverie.contracts import carry as of_carry


class SyncStreams(SyncBase):
    """Calls that go on for long."""

    def events(
        self,
        *,
        scope: Sequence[str] | None = None,
        kind: Sequence[str] | None = None,
        event: Sequence[str] | None = None,
        after: str | None = None,
    ) -> Iterator[Happened]:
        """What happens to memories, from now on or from the place `after`, without an end.

        A connection that breaks is made anew and goes on where it was. Raises `Unavailable` once
        as many tries as the client has failed in a row.
        """
        return self._portal.each(
            self._reverie.events(scope=scope, kind=kind, event=event, after=after)
        )

    def export(
        self,
        *,
        format: Literal["jsonl", "markdown", "obsidian"] = "jsonl",
        scope: Sequence[str] | None = None,
    ) -> Iterator[bytes]:
        """All that the key may read, in pieces: JSON lines, or a tar of Markdown files.

        Raises `Unavailable` where it breaks off: what came is not whole then.
        """
        return self._portal.each(self._reverie.export(format=format, scope=scope))

    def import_(
        self,
        source: bytes | IO[bytes],
        *,
        strategy: Literal["merge", "replace", "skip"] = "merge",
        scope: str | None = None,
        dry_run: bool = False,
        kind: str = "application/x-ndjson",
        seconds: float = 3600.0,
    ) -> of_carry.Imported:
        """Takes in an export: bytes, or a file that is read while it is sent.

        `kind`: its media type, `text/markdown` and `application/x-tar` too; `seconds`: what it
        may take. It is sent once; sent again, it changes nothing that it changed before.
        """
        return self._portal.wait(
            self._reverie.import_(
                source, strategy=strategy, scope=scope, dry_run=dry_run, kind=kind, seconds=seconds
            )
        )
