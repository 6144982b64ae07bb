"""The `reverie import` group: an export by default, or transcripts of coding agents."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from reverie.cli.app.common import FAILED, Home, Json, Sets, err, out, print_json, resolve_settings
from reverie.cli.app.gateway_client import error_from_response
from reverie.cli.memory.export_import import endpoint_from_settings, import_memories, show_progress
from reverie.domain.core.errors import InvalidInput

if TYPE_CHECKING:
    from reverie.agent.transcripts.files import TranscriptFormat
    from reverie.agent.transcripts.importer import TranscriptImporter
    from reverie.runtime.settings.settings import Settings

TranscriptFiles = list[tuple[Path, "TranscriptFormat"]]

DEFAULT_COMMAND = "memories"


class DefaultImportGroup(TyperGroup):
    """What is no name of a command is a path of memories."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the default command before a path or an option."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=DefaultImportGroup,
    no_args_is_help=True,
    help="Take in an export (`reverie import PATH`), or conversations.\n\n"
    "Example: [bold]reverie import memories/ --dry-run[/]",
)
app.command(DEFAULT_COMMAND)(import_memories)


@app.command("transcripts")
def import_transcripts(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files, or folders that hold them.")
    ],
    project: Annotated[
        str | None,
        typer.Option("--project", help="Whose sessions; unset: of the folder each worked in."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count; send nothing.")] = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Hand over conversations of Claude Code, Codex, Aider and SpecStory that were had before.

    Formats are told apart by what stands in the files. Done twice, it changes nothing.

    Example: [bold]reverie import transcripts ~/.claude/projects ~/.codex/sessions --dry-run[/]

    Exit codes: 1 where a turn was refused; the others as `reverie --help` tells.
    """
    settings = resolve_settings(home, sets)
    files = _find_transcripts(paths)
    try:
        result = asyncio.run(_run_import(None if dry_run else settings, files, project))
    except KeyboardInterrupt:
        err().print("stopped; run it again to go on", markup=False)
        raise typer.Exit(FAILED) from None
    report = result.report
    if json:
        print_json({"dry_run": dry_run, **vars(report)})
    else:
        for note in report.notes:
            err().print(note, markup=False)
        _print_report(vars(report), dry_run)
    if report.refused:
        raise typer.Exit(FAILED)


def _find_transcripts(paths: list[Path]) -> TranscriptFiles:
    from reverie.agent.transcripts.files import find_transcripts

    files = []
    for path in paths:
        if not path.exists():
            raise InvalidInput("PATH", f"there is no {path}")
        transcripts = list(find_transcripts(path))
        if not transcripts:
            raise InvalidInput(
                "PATH", f"{path} holds no transcript of Claude Code, Codex, Aider or SpecStory"
            )
        files += transcripts
    return list(dict.fromkeys(files))


async def _run_import(
    settings: Settings | None, files: TranscriptFiles, project: str | None
) -> TranscriptImporter:
    from reverie.agent.transcripts.importer import TranscriptImporter

    if settings is None:
        return await _import_files(TranscriptImporter(None, project), files)
    from reverie.client import HttpTransport

    url, key = endpoint_from_settings(settings)
    async with HttpTransport(
        url,
        key,
        timeout=settings.request_timeout,
        agent="reverie-import",
        ca=settings.trusted_ca_file,
    ) as client:

        async def ask(path: str, body: dict[str, Any]) -> tuple[int, Any]:
            response = await client.call("POST", path, body=body)
            return response.status, response.body

        return await _import_files(TranscriptImporter(ask, project), files)


async def _import_files(
    transcript_import: TranscriptImporter, files: TranscriptFiles
) -> TranscriptImporter:
    from reverie.agent.transcripts.importer import ImportStopped

    with show_progress("import", sum(path.stat().st_size for path, _ in files)) as advance:
        for path, transcript_format in files:
            try:
                await transcript_import.import_file(path, transcript_format, advance)
            except ImportStopped as error:
                raise error_from_response(error.status, error.response) from None
    return transcript_import


def _print_report(counts: dict[str, Any], dry_run: bool) -> None:
    prefix = "would be read: " if dry_run else ""
    summary = f"{counts['files']} files, {counts['sessions']} sessions, {counts['accepted']} turns"
    details = [
        f"{counts[name]} {words}"
        for name, words in (
            ("duplicates", "known before"),
            ("skipped", "that only looked around"),
            ("redactions", "secrets replaced"),
            ("unreadable", "lines unreadable"),
            ("refused", "refused"),
        )
        if counts[name]
    ]
    out().print(prefix + ", ".join([summary, *details]), markup=False)
