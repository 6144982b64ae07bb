"""`reverie export` and `reverie import memories`, and HTTP sessions with the gateway for them."""

from __future__ import annotations

import asyncio
import io
import json as jsonlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.app.common import FAILED, Home, Json, Sets, err, out, print_json, resolve_settings
from reverie.cli.app.gateway_client import error_from_response
from reverie.domain.core.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    import aiohttp

    from reverie.runtime.settings.settings import Settings

CHUNK_BYTES = 256 * 1024
_REPORT_EVERY_BYTES = 16 * 1024 * 1024

AdvanceProgress = Callable[[int], None]


class ExportFormat(StrEnum):
    """What an export is made of."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"
    OBSIDIAN = "obsidian"


class ImportStrategy(StrEnum):
    """Which side wins where a file meets what stands."""

    MERGE = "merge"
    REPLACE = "replace"
    SKIP = "skip"


FormatOption = Annotated[ExportFormat, typer.Option("--format", "-f", help="What to write.")]
Scopes = Annotated[
    list[str] | None, typer.Option("--scope", help="Only this scope and what lies below it.")
]
Target = Annotated[
    Path, typer.Option("--output", "-o", help="A file (JSON lines), or a folder (the others).")
]
Source = Annotated[Path, typer.Argument(help="A .jsonl, a memory.md, a .tar, or a folder.")]
StrategyOption = Annotated[ImportStrategy, typer.Option("--strategy", help="Which side wins.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen; write nothing.")]
ScopeOption = Annotated[str | None, typer.Option("--scope", help="Scope of a memory.md.")]


def export(
    output: Target,
    export_format: FormatOption = ExportFormat.JSONL,
    scope: Scopes = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Write all that the key may read to a file or a folder.

    The key is REVERIE_API_KEY, or the one in the home folder.

    Example: [bold]reverie export --format markdown -o memories/[/]
    """
    settings = resolve_settings(home, sets)
    _prepare_output(output, export_format)
    query = [
        ("format", export_format.value),
        *(("scope", scope_name) for scope_name in scope or ()),
    ]
    size = asyncio.run(_download(settings, query, output, export_format is not ExportFormat.JSONL))
    if json:
        print_json({"output": str(output), "format": export_format.value, "bytes": size})
    else:
        err().print(f"wrote {size:,} bytes to {output}", markup=False)


def _prepare_output(output: Path, export_format: ExportFormat) -> None:
    """Makes the folder around the output.

    Raises `InvalidInput` where it cannot be what it is to be.
    """
    if export_format is ExportFormat.JSONL and output.is_dir():
        raise InvalidInput("--output", f"{output} is a folder: name a file")
    try:
        (output.parent if export_format is ExportFormat.JSONL else output).mkdir(
            parents=True, exist_ok=True
        )
    except OSError as error:
        raise InvalidInput(
            "--output", f"no folder can be made for {output}: {error.strerror}"
        ) from None


def import_memories(
    path: Source,
    strategy: StrategyOption = ImportStrategy.MERGE,
    dry_run: DryRun = False,
    scope: ScopeOption = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Take an export in: JSON lines, a memory.md, a tar, or a folder of memory.md files.

    Example: [bold]reverie import memories memories/ --dry-run[/]

    Exit codes: 1 where a line was refused; the others as `reverie --help` tells.
    """
    settings = resolve_settings(home, sets)
    query = {"strategy": strategy.value, "dry_run": str(dry_run).lower()}
    result = asyncio.run(_upload(settings, path, {**query, **({"scope": scope} if scope else {})}))
    if json:
        print_json(result)
    else:
        _print_counts(result)
    if result["refused"]:
        raise typer.Exit(FAILED)


def _print_counts(result: dict[str, Any]) -> None:
    names = ("created", "updated", "skipped", "forgotten", "refused")
    prefix = "would be: " if result["dry_run"] else ""
    out().print(prefix + ", ".join(f"{result[name]} {name}" for name in names), markup=False)
    for line in result["refused_lines"]:
        location = f"{line['file']}:" if line.get("file") else "line "
        err().print(f"{location}{line['line']}: {line['reason']}", markup=False)


async def _download(
    settings: Settings, query: list[tuple[str, str]], output: Path, unpack: bool
) -> int:
    async with open_http_session(settings) as http:
        response = await http.get("/v1/export", params=query)
        await raise_for_problem(response)
        with tempfile.TemporaryFile() as buffer, show_progress("export", None) as advance:
            if unpack:
                size = await _copy_body(response, buffer, advance)
                buffer.seek(0)
                with tarfile.open(fileobj=buffer, mode="r") as archive:
                    extract_archive(archive, output)
                return size
            # A file that has the name is whole: what is broken off leaves the one before it.
            partial = output.with_name(f"{output.name}.part")
            with partial.open("wb") as file:
                size = await _copy_body(response, file, advance)
            partial.replace(output)
            return size


def extract_archive(archive: tarfile.TarFile, output: Path) -> None:
    """Only plain files that stay inside; tarfile's filters came with Python 3.11.4."""
    root = output.resolve()
    for member in archive:
        target = (root / member.name).resolve()
        if not member.isreg() or not target.is_relative_to(root):
            raise InvalidInput("export", f"{member.name} is no plain file below {output}")
        target.parent.mkdir(parents=True, exist_ok=True)
        source = archive.extractfile(member)
        with target.open("wb") as file:
            shutil.copyfileobj(source or io.BytesIO(), file)
        os.utime(target, (member.mtime, member.mtime))


async def _copy_body(response: aiohttp.ClientResponse, file: Any, advance: AdvanceProgress) -> int:
    size = 0
    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
        file.write(chunk)
        size += len(chunk)
        advance(len(chunk))
    return size


async def _upload(settings: Settings, path: Path, query: dict[str, str]) -> dict[str, Any]:
    content_type, size, chunks = _open_source(path)
    async with open_http_session(settings) as http:
        with show_progress("import", size) as advance:

            async def told() -> AsyncIterator[bytes]:
                for chunk in chunks:
                    yield chunk
                    advance(len(chunk))

            headers = {"Content-Type": content_type}
            response = await http.post("/v1/import", params=query, data=told(), headers=headers)
            await raise_for_problem(response)
            return dict(await response.json())


def _open_source(path: Path) -> tuple[str, int, Iterator[bytes]]:
    """What kind of body the path is, its bytes, and the bytes themselves."""
    if path.is_dir():
        archive = _pack_folder(path)
        size = archive.seek(0, io.SEEK_END)
        archive.seek(0)
        return "application/x-tar", size, _read_chunks(archive)
    if not path.is_file():
        raise InvalidInput("PATH", f"there is no {path}")
    content_types = {".md": "text/markdown", ".tar": "application/x-tar"}
    content_type = content_types.get(path.suffix.lower(), "application/x-ndjson")
    return content_type, path.stat().st_size, _read_chunks(path.open("rb"))


def _pack_folder(folder: Path) -> IO[bytes]:
    """The memory files of a folder as a tar. Raises `InvalidInput` where there are none."""
    files = sorted(folder.rglob("memory.md"))
    if not files:
        has_markdown = any(folder.rglob("*.md"))
        hint = ": a vault is for reading, export as jsonl or markdown" if has_markdown else ""
        raise InvalidInput("PATH", f"there is no memory.md in {folder}{hint}")
    buffer = tempfile.TemporaryFile()  # noqa: SIM115
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for file in files:
            archive.add(file, str(file.relative_to(folder)))
    return buffer


def _read_chunks(source: IO[bytes]) -> Iterator[bytes]:
    with source:
        while chunk := source.read(CHUNK_BYTES):
            yield chunk


async def raise_for_problem(response: aiohttp.ClientResponse) -> None:
    if response.status >= 400:
        text = await response.text()
        try:
            problem = jsonlib.loads(text)
        except ValueError:
            problem = None
        raise error_from_response(response.status, problem)


@asynccontextmanager
async def open_http_session(settings: Settings) -> AsyncIterator[aiohttp.ClientSession]:
    """A session with the gateway that runs on these settings. Raises `Unavailable`."""
    import aiohttp

    from reverie.contracts.tls import create_tls_context

    url, key = endpoint_from_settings(settings)
    timeout = aiohttp.ClientTimeout(total=settings.transfer_timeout, sock_connect=5)
    headers = {"Authorization": f"Bearer {key}"}
    connector = aiohttp.TCPConnector(ssl=create_tls_context(settings.trusted_ca_file))
    async with aiohttp.ClientSession(
        url, headers=headers, timeout=timeout, connector=connector
    ) as http:
        try:
            yield http
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"the gateway at {url}", "does `reverie up` run?") from error


def endpoint_from_settings(settings: Settings) -> tuple[str, str]:
    """Where the gateway of these settings answers, and the key for it.

    Raises as `resolve_endpoint`.
    """
    from reverie.cli.app.gateway_discovery import resolve_endpoint

    raw = settings.model_dump(include={"home", "gateway_url", "host", "recall_port", "tls_cert"})
    key = settings.api_key.get_secret_value() if settings.api_key else None
    return resolve_endpoint({**raw, "api_key": key})


@contextmanager
def show_progress(label: str, size: int | None) -> Iterator[AdvanceProgress]:
    """A bar on a terminal, elsewhere a line now and then; on standard error."""
    if err().is_terminal:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        with Progress(
            TextColumn(label), BarColumn(), DownloadColumn(), console=err(), transient=True
        ) as bar:
            task = bar.add_task(label, total=size)
            yield lambda count: bar.advance(task, count)
        return
    done = 0

    def tell(count: int) -> None:
        nonlocal done
        before, done = done, done + count
        if before // _REPORT_EVERY_BYTES != done // _REPORT_EVERY_BYTES:
            err().print(f"{label}: {done // 1024 // 1024} MiB", markup=False)

    yield tell
