"""Route that imports JSON lines, a `memory.md`, or a tar of such files."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import BinaryIO, Literal

from reverie.contracts.base import NonBlankStr
from reverie.contracts.export_import import ImportResponse
from reverie.domain.access.scopes import parse_scope
from reverie.domain.core.errors import InvalidInput, MalformedInput
from reverie.domain.formats.memory_md import parse_memory_file
from reverie.runtime.http.calls import Call, unlimited
from reverie.runtime.http.routes import Route
from reverie.runtime.http.validation import QueryParams
from reverie_services.ingest.dependencies import ImportDependencies
from reverie_services.ingest.write.jsonl_import import ImportContext, ImportTally, import_lines
from reverie_services.ingest.write.markdown_import import MarkdownImport, import_markdown


class ImportQuery(QueryParams):
    """The strategy for memories that exist already, and the target scope; `dry_run` changes
    nothing.
    """

    strategy: Literal["merge", "replace", "skip"] = "merge"
    dry_run: bool = False
    scope: NonBlankStr | None = None


def build_import_routes(deps: ImportDependencies) -> list[Route]:
    """The routes of imports."""
    handlers = ImportHandlers(deps)
    return [
        Route(
            "POST",
            "/v1/import",
            handlers.import_file,
            query=ImportQuery,
            response=ImportResponse,
            request_media_types=("application/x-ndjson", "text/markdown", "application/x-tar"),
            streaming=True,
            stream_limit=deps.settings.import_limit,
            summary="Import an export: JSON lines, a memory.md, or a tar of them",
        ),
    ]


class ImportHandlers:
    """Handler of imports."""

    def __init__(self, deps: ImportDependencies) -> None:
        self._deps = deps

    async def import_file(self, call: Call[None, ImportQuery]) -> ImportResponse:
        """`POST /v1/import`."""
        query, principal = call.query, call.principal
        charge_quota = unlimited if query.dry_run else call.spend
        tally = ImportTally(ImportResponse(dry_run=query.dry_run))
        media_type = call.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        with tempfile.TemporaryFile() as file:
            await spool_body(call.stream, file)
            if media_type in {"text/markdown", "application/x-tar"}:
                for name, written_scope, text in _iterate_markdown_files(
                    file, media_type, query.scope
                ):
                    redactor = await self._deps.load_redactor(principal.tenant)
                    redactor = redactor.naming(principal.may_read)
                    scope = parse_scope(written_scope, redactor)
                    job_arguments = query.strategy, tally, name, written_scope, charge_quota
                    job = MarkdownImport(self._deps, principal, redactor, scope, *job_arguments)
                    await import_markdown(job, text)
                return tally.result
            session = self._deps.export_import.open_import(principal, query.strategy, query.dry_run)
            context = ImportContext(
                session, tally, self._deps.settings, self._deps.load_redactor, charge_quota
            )
            async with session:
                await import_lines(file, principal, context)
        return tally.result


def _iterate_markdown_files(
    file: BinaryIO, media_type: str, scope: str | None
) -> Iterator[tuple[str | None, str, str]]:
    """Name, scope as it is written, and text of each file.

    Raises `InvalidInput` or `MalformedInput`.
    """
    if media_type == "text/markdown":
        text = _decode_text(file.read())
        written_scope = scope or parse_memory_file(text).scope
        if not written_scope:
            raise InvalidInput("scope", "name the scope of the file")
        yield None, written_scope, text
        return
    try:
        with tarfile.open(fileobj=file, mode="r|") as archive:
            for entry in archive:
                path = PurePosixPath(entry.name)
                content = archive.extractfile(entry) if entry.isfile() else None
                if content is not None and path.name == "memory.md":
                    text = _decode_text(content.read())
                    yield entry.name, _resolve_file_scope(str(path.parent), text), text
    except tarfile.TarError:
        raise MalformedInput("the body is no tar archive") from None


def _resolve_file_scope(path: str, text: str) -> str:
    """The scope of a file in a tree: its path, or as the file writes it where that is the same."""
    written = parse_memory_file(text).scope
    with suppress(InvalidInput):
        return written if written and parse_scope(written) == parse_scope(path) else path
    return path


def _decode_text(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise MalformedInput("the file is not UTF-8") from None
    if "\x00" in text:
        raise MalformedInput("the file holds a NUL character")
    return text


async def spool_body(chunks: AsyncIterator[bytes] | None, file: BinaryIO) -> None:
    """The whole body in a file, which is then at its beginning."""
    if chunks is not None:
        async for chunk in chunks:
            file.write(chunk)
    file.seek(0)
