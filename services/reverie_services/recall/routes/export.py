"""Route that streams an export of memories: JSON lines, Markdown, or an Obsidian vault."""

from __future__ import annotations

import asyncio
import json
import tarfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from io import BytesIO
from typing import Literal

from reverie.contracts.base import NonBlankStr
from reverie.contracts.export_import import EXPORT_FORMAT, EXPORT_VERSION
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import parse_scope
from reverie.domain.core.errors import Overloaded, Unavailable
from reverie.domain.formats.memory_md import render_memory_file
from reverie.domain.formats.obsidian import build_note_name, render_note, render_scope_index
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.streaming import StreamingReply
from reverie.runtime.http.validation import QueryParams
from reverie.store.memories.export_import import ScopeNotes
from reverie_services.recall.dependencies import ExportDependencies

ExportedFiles = Iterator[tuple[str, str]]


def render_markdown_files(scope: ScopeNotes) -> ExportedFiles:
    """`<scope>/memory.md`."""
    yield (
        f"{scope.scope}/memory.md",
        render_memory_file(scope.display_name, scope.summary, scope.memories),
    )


def render_obsidian_files(scope: ScopeNotes) -> ExportedFiles:
    """A note for each memory, and the index of the scope."""
    for memory in scope.memories:
        text = render_note(memory, scope.links.get(memory.id, []))
        yield f"{scope.scope}/{build_note_name(memory)}.md", text
    index = f"{scope.scope.replace('/', '-')}-index.md"
    yield (
        f"{scope.scope}/{index}",
        render_scope_index(scope.display_name, scope.summary, scope.memories),
    )


async def stream_tar(
    scopes: AsyncIterator[ScopeNotes], render_files: Callable[[ScopeNotes], ExportedFiles]
) -> AsyncGenerator[bytes, None]:
    """The files of all scopes as one archive, piece by piece; the same rows give the same bytes."""
    sink = _TarBuffer()
    with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        async for scope in scopes:
            newest = max(int(memory.updated_at.timestamp()) for memory in scope.memories)
            for name, text in render_files(scope):
                entry, data = tarfile.TarInfo(name), text.encode()
                entry.size, entry.mtime, entry.mode = len(data), newest, 0o644
                archive.addfile(entry, BytesIO(data))
                if sink.tell():
                    yield sink.drain()
    yield sink.drain()


class _TarBuffer(BytesIO):
    """The write buffer of the archive, drained during the export."""

    def drain(self) -> bytes:
        data = self.getvalue()
        self.seek(0)
        self.truncate()
        return data


JSONL_HEADER = json.dumps({"type": "header", "format": EXPORT_FORMAT, "version": EXPORT_VERSION})


class ExportQuery(QueryParams):
    """The format and the scopes of an export; a scope includes all scopes below it."""

    format: Literal["jsonl", "markdown", "obsidian"] = "jsonl"
    scope: list[NonBlankStr] | None = None


routes: RouteTable[ExportHandler] = RouteTable()


class ExportHandler:
    """Answers exports, and counts those that are being sent."""

    def __init__(self, deps: ExportDependencies) -> None:
        self._deps = deps
        self._active_exports = 0

    @routes.add(
        "GET /v1/export",
        streaming=True,
        response_examples={"application/x-ndjson": f"{JSONL_HEADER}\n", "application/x-tar": ""},
    )
    async def export_memories(self, call: Call[None, ExportQuery]) -> StreamingReply:
        """Export all that the key may read: JSON lines, Markdown, or an Obsidian vault."""
        principal = call.principal
        scope_patterns = _build_scope_patterns(principal, call.query.scope)
        if call.query.format == "jsonl":
            chunks = _encode_jsonl(self._deps.export_import.export_lines(principal, scope_patterns))
            return StreamingReply(
                self._limit_concurrency(chunks), {"Content-Type": "application/x-ndjson"}
            )
        is_obsidian = call.query.format == "obsidian"
        scopes = self._deps.scope_notes.iterate_scopes(principal, scope_patterns, is_obsidian)
        chunks = stream_tar(scopes, render_obsidian_files if is_obsidian else render_markdown_files)
        return StreamingReply(
            self._limit_concurrency(chunks), {"Content-Type": "application/x-tar"}
        )

    async def _limit_concurrency(self, chunks: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        """Yields the pieces; raises `Overloaded` before the first if too many exports run."""
        if self._active_exports >= self._deps.max_concurrent:
            raise Overloaded("exports", self._active_exports, 0)
        self._active_exports += 1
        try:
            async with aclosing(stream_with_deadline(chunks, self._deps.timeout)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._active_exports -= 1


async def stream_with_deadline(
    chunks: AsyncGenerator[bytes, None], seconds: float
) -> AsyncGenerator[bytes, None]:
    """Yields the pieces, as long as they are produced and taken within `seconds`.

    An export reads as of one moment, and meanwhile the database removes no dead rows of any tenant.
    So the production ends at the deadline even if nobody takes another piece. Raises `Unavailable`.
    """
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
    room = asyncio.Semaphore(1)

    async def produce() -> None:
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline, aclosing(chunks):
                async for chunk in chunks:
                    await room.acquire()
                    pieces.put_nowait(chunk)
        except TimeoutError:
            if not deadline.expired():
                raise
            hint = f"it was not read within {seconds:g} seconds (transfer_timeout): read faster"
            raise Unavailable("the export", hint) from None
        finally:
            pieces.put_nowait(None)

    producer = asyncio.create_task(produce())
    try:
        while (piece := await pieces.get()) is not None:
            room.release()
            yield piece
        await producer
    finally:
        producer.cancel()
        await asyncio.gather(producer, return_exceptions=True)


def _build_scope_patterns(principal: Principal, requested_scopes: list[str] | None) -> list[str]:
    """The scope patterns of an export; raises `Forbidden` for one that may not be read."""
    if requested_scopes is None:
        return ["*"]
    scopes = [parse_scope(name) for name in requested_scopes]
    principal.check_read(scopes)
    return [f"{scope}/*" for scope in scopes]


async def _encode_jsonl(pages: AsyncIterator[list[str]]) -> AsyncGenerator[bytes, None]:
    yield f"{JSONL_HEADER}\n".encode()
    async for page in pages:
        yield "".join(f"{line}\n" for line in page).encode()
