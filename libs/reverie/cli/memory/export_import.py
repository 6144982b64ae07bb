"""`reverie export` and `reverie import memories`."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, cast

import click

from reverie.cli.app.errors import FAILED
from reverie.cli.app.gateway_client import open_client
from reverie.cli.app.options import CommonOptions, common_options, dry_run_option
from reverie.cli.app.output import AdvanceProgress, err, plural, show_progress
from reverie.domain.core.errors import InvalidInput

if TYPE_CHECKING:
    from reverie.contracts.export_import import ImportResponse
    from reverie.runtime.settings.settings import Settings

ExportFormat = Literal["jsonl", "markdown", "obsidian"]
ImportStrategy = Literal["merge", "replace", "skip"]


@click.command("export")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path),
    help="A file (jsonl), or a folder (other formats).",
)
@click.option(
    "--format",
    "-f",
    "export_format",
    type=click.Choice(["jsonl", "markdown", "obsidian"]),
    default="jsonl",
    help="The format of the export.",
)
@click.option("--scope", multiple=True, help="Only this scope and the scopes below it.")
@common_options
def export(
    options: CommonOptions, output: Path, export_format: ExportFormat, scope: tuple[str, ...]
) -> None:
    """Export all memories that the key may read to a file or a folder.

    Example: reverie export --format markdown -o memories/
    """
    import asyncio

    settings = options.settings()
    if export_format == "jsonl" and output.is_dir():
        raise InvalidInput("--output", f"{output} is a folder: give a file")
    folder = output.parent if export_format == "jsonl" else output
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput("--output", f"cannot create {folder}: {error.strerror}") from None
    size = asyncio.run(_download(settings, export_format, scope, output))
    options.print_result({"output": str(output), "format": export_format, "bytes": size})
    if not options.json:
        err().print(f"wrote {plural(size, 'byte')} to {output}", markup=False)


async def _download(
    settings: Settings, export_format: ExportFormat, scope: tuple[str, ...], output: Path
) -> int:
    """Writes the export; the number of bytes in its files."""
    # An interrupted export leaves an earlier file as it was.
    partial = output.with_name(f"{output.name}.part")
    size = 0
    with tempfile.TemporaryFile() if export_format != "jsonl" else partial.open("wb") as file:
        async with open_client(settings, "reverie-export") as client:
            pieces = client.export_memories(format=export_format, scope=scope or None)
            with show_progress("export", None) as advance:
                async for piece in pieces:
                    file.write(piece)
                    size += len(piece)
                    advance(len(piece))
        if export_format != "jsonl":
            file.seek(0)
            with tarfile.open(fileobj=file, mode="r") as archive:
                size = extract_archive(archive, output)
    if export_format == "jsonl":
        partial.replace(output)
    return size


def extract_archive(archive: tarfile.TarFile, output: Path) -> int:
    """Extracts plain files inside of the folder, and counts their bytes.

    tarfile's own filters need Python 3.11.4.
    """
    root, size = output.resolve(), 0
    for member in archive:
        target = (root / member.name).resolve()
        if not member.isreg() or member.issparse() or not target.is_relative_to(root):
            raise InvalidInput("export", f"{member.name} is not a plain file below {output}")
        target.parent.mkdir(parents=True, exist_ok=True)
        source = archive.extractfile(member)
        with target.open("wb") as file:
            shutil.copyfileobj(source or io.BytesIO(), file)
        os.utime(target, (member.mtime, member.mtime))
        size += member.size
    return size


@click.command("memories")
@click.argument(
    "path", type=click.Path(path_type=Path), help="A .jsonl file, a memory.md, a .tar, or a folder."
)
@click.option(
    "--strategy",
    type=click.Choice(["merge", "replace", "skip"]),
    default="merge",
    help="What to do with a memory that exists already.",
)
@dry_run_option
@click.option("--scope", help="The scope for a memory.md; other files name theirs.")
@common_options
def import_memories(
    options: CommonOptions, path: Path, strategy: ImportStrategy, dry_run: bool, scope: str | None
) -> None:
    """Import an export: JSON lines, a memory.md, a tar, or a folder of memory.md files.

    Example: reverie import memories memories/ --dry-run

    If one line is invalid, the whole file is refused.

    Exit codes: 1 if a line conflicts with stored memories, 2 if the file is refused; for the
    others see `reverie --help`.
    """
    run_import(options, path, strategy, dry_run, scope)


def run_import(
    options: CommonOptions, path: Path, strategy: ImportStrategy, dry_run: bool, scope: str | None
) -> None:
    """Sends a file or a folder, and prints what became of it."""
    import asyncio

    from reverie.client import ApiError

    settings = options.settings()
    try:
        response = asyncio.run(_upload(settings, path, strategy, dry_run, scope))
    except ApiError as error:
        # The first is in the error itself.
        for refused in () if options.json else (error.problem.errors or ())[1:]:
            err().print(f"{refused['field']}: {refused['reason']}", markup=False)
        raise
    result = response.model_dump(mode="json")
    names = ("created", "updated", "skipped", "forgotten", "rejected")
    counts = ", ".join(f"{result[name]} {name}" for name in names)
    options.print_result(result, f"would be: {counts}" if dry_run else counts)
    for line in () if options.json else result["rejected_lines"]:
        location = f"{line['file']}:" if line.get("file") else "line "
        err().print(f"{location}{line['line']}: {line['reason']}", markup=False)
    if result["rejected"]:
        raise click.exceptions.Exit(FAILED)


class _ProgressReader(io.RawIOBase):
    """Reads a file, and reports how many bytes were read."""

    def __init__(self, source: IO[bytes], advance: AdvanceProgress) -> None:
        self._source = source
        self._advance = advance

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._advance(len(data))
        return data


async def _upload(
    settings: Settings, path: Path, strategy: ImportStrategy, dry_run: bool, scope: str | None
) -> ImportResponse:
    media_type, source = _open_source(path)
    size = source.seek(0, io.SEEK_END)
    source.seek(0)
    with source, show_progress("import", size) as advance:
        async with open_client(settings, "reverie-import") as client:
            return await client.import_memories(
                cast("IO[bytes]", _ProgressReader(source, advance)),
                strategy=strategy,
                scope=scope,
                dry_run=dry_run,
                media_type=media_type,
                timeout_seconds=settings.transfer_timeout,
            )


def _open_source(path: Path) -> tuple[str, IO[bytes]]:
    """The media type of an import, and its content; the files of a folder become a tar."""
    if path.is_file():
        media_types = {".md": "text/markdown", ".tar": "application/x-tar"}
        return media_types.get(path.suffix.lower(), "application/x-ndjson"), path.open("rb")
    if not path.is_dir():
        raise InvalidInput("PATH", f"{path} is no file or folder")
    files = sorted(path.rglob("memory.md"))
    if not files:
        has_markdown = any(path.rglob("*.md"))
        hint = ": an Obsidian vault cannot be imported; export as jsonl or markdown"
        raise InvalidInput("PATH", f"there is no memory.md in {path}{hint if has_markdown else ''}")
    buffer = tempfile.TemporaryFile()  # noqa: SIM115
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for file in files:
            archive.add(file, str(file.relative_to(path)))
    return "application/x-tar", buffer
