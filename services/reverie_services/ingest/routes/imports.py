"""Route that imports JSON lines, a `memory.md`, or a tar of such files."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import BinaryIO, Literal

from reverie.contracts.base import NonBlankStr
from reverie.contracts.export_import import ImportResponse
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import parse_scope
from reverie.domain.core.errors import Forbidden, InvalidInput
from reverie.runtime.http.calls import Call, unlimited
from reverie.runtime.http.routes import Route
from reverie.runtime.http.validation import QueryParams
from reverie_services.ingest.dependencies import ImportDependencies
from reverie_services.ingest.write.jsonl_import import ImportContext, ImportTally, import_lines
from reverie_services.ingest.write.markdown_files import MarkdownBody
from reverie_services.ingest.write.markdown_import import MarkdownContext, import_markdown_files

MAX_CONCURRENT_IMPORTS = 2
"""Imports that are checked and stored at once; the others wait."""
_MARKDOWN, _TAR = "text/markdown", "application/x-tar"


class ImportQuery(QueryParams):
    """The strategy for memories that exist already; `dry_run` changes nothing.

    `scope`: the target scope of a `text/markdown` body. Other bodies name their scopes.
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
            request_media_types=("application/x-ndjson", _MARKDOWN, _TAR),
            streaming=True,
            stream_limit=deps.settings.import_limit,
            body_limit_setting="import_limit",
            summary="Import an export: JSON lines, a memory.md, or a tar of them",
        ),
    ]


class ImportHandlers:
    """Handler of imports."""

    def __init__(self, deps: ImportDependencies) -> None:
        self._deps = deps
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_IMPORTS)

    async def import_file(self, call: Call[None, ImportQuery]) -> ImportResponse:
        """`POST /v1/import`: the body is read to its end, checked as a whole, then stored."""
        deps, query, principal = self._deps, call.query, call.principal
        media_type = call.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        _check_request(query, media_type, principal)
        charge_quota = unlimited if query.dry_run else call.spend
        tally = ImportTally(ImportResponse(dry_run=query.dry_run))
        with tempfile.TemporaryFile() as file:
            await spool_body(call.stream, file)
            async with self._slots:
                if media_type in {_MARKDOWN, _TAR}:
                    body = MarkdownBody(file, media_type == _TAR, query.scope)
                    markdown = MarkdownContext(deps, principal, query.strategy, tally, charge_quota)
                    await import_markdown_files(body, markdown)
                else:
                    session = deps.export_import.open_import(
                        principal, query.strategy, query.dry_run
                    )
                    lines = ImportContext(
                        principal, session, tally, deps.settings, deps.load_redactor, charge_quota
                    )
                    await import_lines(file, lines)
        return tally.result


def _check_request(query: ImportQuery, media_type: str, principal: Principal) -> None:
    """Refuses before the body is read what needs no look at it."""
    if not principal.writable_patterns:
        raise Forbidden("write", query.scope or "*")
    if query.scope is None:
        return
    if media_type != _MARKDOWN:
        raise InvalidInput("scope", f"goes with {_MARKDOWN} only: other bodies name their scopes")
    principal.check_write(parse_scope(query.scope))


async def spool_body(chunks: AsyncIterator[bytes] | None, file: BinaryIO) -> None:
    """The whole body in a file, which is then at its beginning."""
    if chunks is not None:
        async for chunk in chunks:
            file.write(chunk)
    file.seek(0)
