"""Files come in over HTTP."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import BinaryIO, Literal

from reverie.contracts.base import Text
from reverie.contracts.carry import Imported
from reverie.domain.errors import Invalid, Malformed
from reverie.domain.known_secrets import knowing
from reverie.domain.scopes import parse_scope
from reverie.domain.segments import parse_file
from reverie.ingest.carry_in import Tally, Way, take_lines
from reverie.ingest.markdown_in import Intake, take_markdown
from reverie.ingest.parts import Parts
from reverie.runtime.body import Query
from reverie.runtime.calls import Call, free
from reverie.runtime.routes import Route


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
              takes=("application/x-ndjson", "text/markdown", "application/x-tar"),
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
        spend = free if query.dry_run else call.spend
        tally = Tally(Imported(dry_run=query.dry_run))
        kind = call.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        with tempfile.TemporaryFile() as file:
            await spool(call.stream, file)
            if kind in {"text/markdown", "application/x-tar"}:
                for name, named, text in _markdown_files(file, kind, query.scope):
                    scope = parse_scope(named)
                    told = query.strategy, tally, name, named, spend
                    intake = Intake(self._parts, who, scope, *told)
                    with knowing(await self._parts.vault.known(who.tenant), who.may_read):
                        await take_markdown(intake, text)
                return tally.answer
            landing = self._parts.carry.landing(who, query.strategy, query.dry_run)
            way = Way(landing, tally, self._parts.settings, self._parts.vault.known, spend)
            async with landing:
                await take_lines(file, who, way)
        return tally.answer


def _markdown_files(
    file: BinaryIO, kind: str, scope: str | None
) -> Iterator[tuple[str | None, str, str]]:
    """Name, scope as it is written, and text of each file. Raises `Invalid` or `Malformed`."""
    if kind == "text/markdown":
        text = _text(file.read())
        named = scope or parse_file(text).scope
        if not named:
            raise Invalid("scope", "name the scope of the file")
        yield None, named, text
        return
    try:
        with tarfile.open(fileobj=file, mode="r|") as archive:
            for entry in archive:
                path = PurePosixPath(entry.name)
                inside = archive.extractfile(entry) if entry.isfile() else None
                if inside is not None and path.name == "memory.md":
                    text = _text(inside.read())
                    yield entry.name, _named(str(path.parent), text), text
    except tarfile.TarError:
        raise Malformed("the body is no tar archive") from None


def _named(path: str, text: str) -> str:
    """The scope of a file in a tree: its path, or as the file writes it where that is the same."""
    written = parse_file(text).scope
    with suppress(Invalid):
        return written if written and parse_scope(written) == parse_scope(path) else path
    return path


def _text(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Malformed("the file is not UTF-8") from None
    if "\x00" in text:
        raise Malformed("the file holds a NUL character")
    return text


async def spool(pieces: AsyncIterator[bytes] | None, file: BinaryIO) -> None:
    """The whole body in a file, which is then at its beginning."""
    if pieces is not None:
        async for piece in pieces:
            file.write(piece)
    file.seek(0)
