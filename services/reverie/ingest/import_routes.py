"""Files come in over HTTP."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from typing import BinaryIO, Literal

from reverie.contracts.base import Text
from reverie.contracts.carry import Imported
from reverie.ingest.carry_in import Tally, take_lines
from reverie.ingest.parts import Parts
from reverie.runtime.body import Query
from reverie.runtime.calls import Call
from reverie.runtime.routes import Route

SPOOL = 8 * 1024 * 1024
"""Bytes of a file that are held in memory before it goes to disk."""


class ImportQuery(Query):
    """How a file meets what stands."""

    strategy: Literal["merge", "replace", "skip"] = "merge"
    dry_run: bool = False
    scope: Text | None = None


def routes(parts: Parts) -> list[Route]:
    """The table of imports."""
    doors = Doors(parts)
    return [
        Route("POST", "/v1/import", doors.take, query=ImportQuery, answer=Imported,
              streams=True, stream_limit=parts.settings.import_limit,
              summary="Take in an export: JSON lines, a memory.md, or a tar of a tree of them"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def take(self, call: Call[None, ImportQuery]) -> Imported:
        """`POST /v1/import`."""
        query, who = call.query, call.principal
        tally = Tally(Imported(dry_run=query.dry_run))
        landing = self._parts.carry.landing(who, query.strategy, query.dry_run)
        with tempfile.SpooledTemporaryFile(SPOOL) as file:
            await spool(call.stream, file)  # type: ignore[arg-type]
            async with landing:
                await take_lines(file, who, self._parts.settings, landing, tally)  # type: ignore[arg-type]
        return tally.answer


async def spool(pieces: AsyncIterator[bytes] | None, file: BinaryIO) -> None:
    """The whole body in a file, which is then at its beginning."""
    if pieces is not None:
        async for piece in pieces:
            file.write(piece)
    file.seek(0)
