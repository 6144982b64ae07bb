"""What a key may read, as a file."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Literal

from reverie.contracts.base import Text
from reverie.contracts.carry import FORMAT, VERSION
from reverie.domain.access import Principal
from reverie.domain.errors import Crowded
from reverie.domain.scopes import parse_scope
from reverie.recall.export_files import markdown, tar, vault
from reverie.recall.parts import Parts
from reverie.runtime.body import Query
from reverie.runtime.calls import Call
from reverie.runtime.routes import Route
from reverie.runtime.streams import Streamed

HEADER = json.dumps({"type": "header", "format": FORMAT, "version": VERSION})


class ExportQuery(Query):
    """In which form, and of which scopes; a scope stands for all below it too."""

    format: Literal["jsonl", "markdown", "obsidian"] = "jsonl"
    scope: list[Text] | None = None


def routes(parts: Parts) -> list[Route]:
    """The table of exports."""
    doors = Doors(parts)
    return [
        Route("GET", "/v1/export", doors.export, query=ExportQuery, streams=True,
              gives={"application/x-ndjson": f"{HEADER}\n", "application/x-tar": ""},
              summary="All that the key may read: JSON lines, markdown, an Obsidian vault"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._sending = 0

    async def export(self, call: Call[None, ExportQuery]) -> Streamed:
        """`GET /v1/export`."""
        who = call.principal
        within = _within(who, call.query.scope)
        if call.query.format == "jsonl":
            pieces = _jsonl(self._parts.carry.lines(who, within))
            return Streamed(self._counted(pieces), {"Content-Type": "application/x-ndjson"})
        linked = call.query.format == "obsidian"
        scopes = self._parts.notes.scopes(who, within, linked)
        pieces = tar(scopes, vault if linked else markdown)
        return Streamed(self._counted(pieces), {"Content-Type": "application/x-tar"})

    async def _counted(self, pieces: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        """The pieces. Raises `Crowded` before the first where too many are being sent.

        As long as somebody takes them, however slowly, a connection is kept.
        """
        if self._sending >= self._parts.settings.exports:
            raise Crowded("exports", self._sending, 0)
        self._sending += 1
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
        finally:
            self._sending -= 1


def _within(who: Principal, named: list[str] | None) -> list[str]:
    """The scope patterns of an export; raises `Forbidden` for one that may not be read."""
    if named is None:
        return ["*"]
    scopes = [parse_scope(one) for one in named]
    who.check_read(scopes)
    return [f"{scope}/*" for scope in scopes]


async def _jsonl(pages: AsyncIterator[list[str]]) -> AsyncGenerator[bytes, None]:
    yield f"{HEADER}\n".encode()
    async for page in pages:
        yield "".join(f"{line}\n" for line in page).encode()
