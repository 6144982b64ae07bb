"""`reverie export` and `reverie import`: everything as files, through the running gateway."""

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

from reverie.cli.asking import refusal
from reverie.cli.common import FAILED, Home, Json, Sets, err, out, print_json, settings_from
from reverie.domain.errors import Invalid, Unavailable

if TYPE_CHECKING:
    import aiohttp

    from reverie.runtime.settings import Settings

PIECE = 256 * 1024
_TELL_EVERY = 16 * 1024 * 1024

Advance = Callable[[int], None]


class Form(StrEnum):
    """What an export is made of."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"
    OBSIDIAN = "obsidian"


class Strategy(StrEnum):
    """Which side wins where a file meets what stands."""

    MERGE = "merge"
    REPLACE = "replace"
    SKIP = "skip"


FormOption = Annotated[Form, typer.Option("--format", "-f", help="What to write.")]
Scopes = Annotated[
    list[str] | None, typer.Option("--scope", help="Only this scope and what lies below it.")
]
Target = Annotated[
    Path, typer.Option("--output", "-o", help="A file (JSON lines), or a folder (the others).")
]
Source = Annotated[Path, typer.Argument(help="A .jsonl, a memory.md, a .tar, or a folder.")]
StrategyOption = Annotated[Strategy, typer.Option("--strategy", help="Which side wins.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen; write nothing.")]
ScopeOption = Annotated[str | None, typer.Option("--scope", help="Scope of a memory.md.")]


def export(
    output: Target,
    form: FormOption = Form.JSONL,
    scope: Scopes = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Write all that the key may read to a file or a folder.

    The key is REVERIE_API_KEY, or the one in the home folder.

    Example: [bold]reverie export --format markdown -o memories/[/]
    """
    settings = settings_from(home, sets)
    _prepare(output, form)
    query = [("format", form.value), *(("scope", one) for one in scope or ())]
    size = asyncio.run(_fetch(settings, query, output, form is not Form.JSONL))
    if json:
        print_json({"output": str(output), "format": form.value, "bytes": size})
    else:
        err().print(f"wrote {size:,} bytes to {output}", markup=False)


def _prepare(output: Path, form: Form) -> None:
    """Makes the folder around the output. Raises `Invalid` where it cannot be what it is to be."""
    if form is Form.JSONL and output.is_dir():
        raise Invalid("--output", f"{output} is a folder: name a file")
    try:
        (output.parent if form is Form.JSONL else output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Invalid("--output", f"no folder can be made for {output}: {error.strerror}") from None


def import_(
    path: Source,
    strategy: StrategyOption = Strategy.MERGE,
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
    settings = settings_from(home, sets)
    query = {"strategy": strategy.value, "dry_run": str(dry_run).lower()}
    answer = asyncio.run(_send(settings, path, {**query, **({"scope": scope} if scope else {})}))
    if json:
        print_json(answer)
    else:
        _print(answer)
    if answer["refused"]:
        raise typer.Exit(FAILED)


def _print(answer: dict[str, Any]) -> None:
    names = ("created", "updated", "skipped", "forgotten", "refused")
    would = "would be: " if answer["dry_run"] else ""
    out().print(would + ", ".join(f"{answer[name]} {name}" for name in names), markup=False)
    for one in answer["refused_lines"]:
        place = f"{one['file']}:" if one.get("file") else "line "
        err().print(f"{place}{one['line']}: {one['reason']}", markup=False)


async def _fetch(
    settings: Settings, query: list[tuple[str, str]], output: Path, unpack: bool
) -> int:
    async with _gateway(settings) as http:
        answer = await http.get("/v1/export", params=query)
        await _check(answer)
        with tempfile.TemporaryFile() as held, progress("export", None) as advance:
            if unpack:
                size = await _copy(answer, held, advance)
                held.seek(0)
                with tarfile.open(fileobj=held, mode="r") as archive:
                    put_below(archive, output)
                return size
            # A file that has the name is whole: what is broken off leaves the one before it.
            part = output.with_name(f"{output.name}.part")
            with part.open("wb") as file:
                size = await _copy(answer, file, advance)
            part.replace(output)
            return size


def put_below(archive: tarfile.TarFile, output: Path) -> None:
    """Only plain files that stay inside; tarfile's filters came with Python 3.11.4."""
    inside = output.resolve()
    for member in archive:
        place = (inside / member.name).resolve()
        if not member.isreg() or not place.is_relative_to(inside):
            raise Invalid("export", f"{member.name} is no plain file below {output}")
        place.parent.mkdir(parents=True, exist_ok=True)
        held = archive.extractfile(member)
        with place.open("wb") as written:
            shutil.copyfileobj(held or io.BytesIO(), written)
        os.utime(place, (member.mtime, member.mtime))


async def _copy(answer: aiohttp.ClientResponse, file: Any, advance: Advance) -> int:
    size = 0
    async for piece in answer.content.iter_chunked(PIECE):
        file.write(piece)
        size += len(piece)
        advance(len(piece))
    return size


async def _send(settings: Settings, path: Path, query: dict[str, str]) -> dict[str, Any]:
    kind, size, pieces = _source(path)
    async with _gateway(settings) as http:
        with progress("import", size) as advance:

            async def told() -> AsyncIterator[bytes]:
                for piece in pieces:
                    yield piece
                    advance(len(piece))

            headers = {"Content-Type": kind}
            answer = await http.post("/v1/import", params=query, data=told(), headers=headers)
            await _check(answer)
            return dict(await answer.json())


def _source(path: Path) -> tuple[str, int, Iterator[bytes]]:
    """What kind of body the path is, its bytes, and the bytes themselves."""
    if path.is_dir():
        packed = _packed(path)
        size = packed.seek(0, io.SEEK_END)
        packed.seek(0)
        return "application/x-tar", size, _pieces(packed)
    if not path.is_file():
        raise Invalid("PATH", f"there is no {path}")
    kinds = {".md": "text/markdown", ".tar": "application/x-tar"}
    kind = kinds.get(path.suffix.lower(), "application/x-ndjson")
    return kind, path.stat().st_size, _pieces(path.open("rb"))


def _packed(folder: Path) -> IO[bytes]:
    """The memory files of a folder as a tar. Raises `Invalid` where there are none."""
    files = sorted(folder.rglob("memory.md"))
    if not files:
        others = any(folder.rglob("*.md"))
        vault = ": a vault is for reading, export as jsonl or markdown" if others else ""
        raise Invalid("PATH", f"there is no memory.md in {folder}{vault}")
    held = tempfile.TemporaryFile()  # noqa: SIM115
    with tarfile.open(fileobj=held, mode="w") as archive:
        for file in files:
            archive.add(file, str(file.relative_to(folder)))
    return held


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    with source:
        while piece := source.read(PIECE):
            yield piece


async def _check(answer: aiohttp.ClientResponse) -> None:
    if answer.status >= 400:
        text = await answer.text()
        try:
            found = jsonlib.loads(text)
        except ValueError:
            found = None
        raise refusal(answer.status, found)


@asynccontextmanager
async def _gateway(settings: Settings) -> AsyncIterator[aiohttp.ClientSession]:
    """A session with the gateway that runs on these settings. Raises `Unavailable`."""
    import aiohttp

    from reverie.contracts.trust import trusting

    url, key = gateway_of(settings)
    timeout = aiohttp.ClientTimeout(total=settings.transfer_timeout, sock_connect=5)
    headers = {"Authorization": f"Bearer {key}"}
    connector = aiohttp.TCPConnector(ssl=trusting(settings.authority))
    async with aiohttp.ClientSession(
        url, headers=headers, timeout=timeout, connector=connector
    ) as http:
        try:
            yield http
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"the gateway at {url}", "does `reverie up` run?") from error


def gateway_of(settings: Settings) -> tuple[str, str]:
    """Where the gateway of these settings answers, and the key for it. Raises as `place_of`."""
    from reverie.cli.near import place_of

    said = settings.model_dump(include={"home", "gateway_url", "host", "recall_port", "tls_cert"})
    key = settings.api_key.get_secret_value() if settings.api_key else None
    return place_of({**said, "api_key": key})


@contextmanager
def progress(what: str, size: int | None) -> Iterator[Advance]:
    """A bar on a terminal, elsewhere a line now and then; on standard error."""
    if err().is_terminal:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        with Progress(
            TextColumn(what), BarColumn(), DownloadColumn(), console=err(), transient=True
        ) as bar:
            task = bar.add_task(what, total=size)
            yield lambda more: bar.advance(task, more)
        return
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        before, done = done, done + more
        if before // _TELL_EVERY != done // _TELL_EVERY:
            err().print(f"{what}: {done // 1024 // 1024} MiB", markup=False)

    yield tell
