"""Streams: what happens, and files that go out and come in."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Literal

from reverie.client.base import Base, given
from reverie.client.later import Later
from reverie.domain.errors import Unavailable

if TYPE_CHECKING:
    from reverie.contracts import carry as of_carry
else:
    of_carry = Later("reverie.contracts.carry")

_LONGEST_PAUSE = 5.0


@dataclass(frozen=True)
class Happened:
    """Something happened; `place` is where to resume from.

    The event `reset` says that events are lost for good: what is known should be read anew.
    """

    event: str
    place: str
    data: dict[str, Any]


class Streams(Base):
    """Calls that go on for long."""

    async def events(
        self,
        *,
        scope: Sequence[str] | None = None,
        kind: Sequence[str] | None = None,
        event: Sequence[str] | None = None,
        after: str | None = None,
    ) -> AsyncIterator[Happened]:
        """What happens to memories, from now on or from the place `after`, without an end.

        A connection that breaks is made anew and goes on where it was. Raises `Unavailable` once
        as many tries as the client has failed in a row.
        """
        from reverie.contracts.sse import sent_in

        query, failed = given(scope=scope, kind=kind, event=event), 0
        while True:
            try:
                sent = {"Last-Event-ID": after} if after else {}
                async with self._caller.stream("GET", "/v1/events", query, sent) as answer:
                    async for one in sent_in(answer):
                        after, failed = one.id, 0
                        if one.data:
                            yield Happened(one.event, one.id, json.loads(one.data))
            except Unavailable:
                failed += 1
                if failed >= self._caller.tries:
                    raise
            await asyncio.sleep(random.uniform(0.05, min(0.2 * 2**failed, _LONGEST_PAUSE)))  # noqa: S311

    async def export(
        self,
        *,
        format: Literal["jsonl", "markdown", "obsidian"] = "jsonl",
        scope: Sequence[str] | None = None,
    ) -> AsyncIterator[bytes]:
        """All that the key may read, in pieces: JSON lines, or a tar of Markdown files.

        Raises `Unavailable` where it breaks off: what came is not whole then.
        """
        query = given(format=format, scope=scope)
        async with self._caller.stream("GET", "/v1/export", query) as answer:
            async for piece in answer.iter_any():
                yield piece

    async def import_(
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
        query = given(strategy=strategy, scope=scope, dry_run=dry_run)
        answer = await self._caller.upload("/v1/import", query, source, kind, seconds)
        return of_carry.Imported.model_validate(answer.body)
