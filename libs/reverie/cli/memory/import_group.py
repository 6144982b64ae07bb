"""`reverie import`: imports an export (the default), of other systems too, or transcripts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP, FAILED
from reverie.cli.app.gateway_client import error_from_response, open_client
from reverie.cli.app.options import CommonOptions, common_options
from reverie.cli.app.output import err, plural, show_progress
from reverie.cli.memory.export_import import import_memories
from reverie.cli.memory.other_systems import import_hindsight, import_mem0
from reverie.domain.core.errors import InvalidInput

if TYPE_CHECKING:
    from reverie.agent.transcripts.files import TranscriptFormat
    from reverie.agent.transcripts.importer import ImportReport, TranscriptImporter
    from reverie.runtime.settings.settings import Settings

TranscriptFiles = list[tuple[Path, "TranscriptFormat"]]


class DefaultImportGroup(click.Group):
    """A group whose default command is `memories`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the default command before a path or an option."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["memories", *args]
        return super().parse_args(ctx, args)


app = DefaultImportGroup(
    "import",
    help="Import an export (`reverie import PATH`), or conversations.\n\n"
    "Example: reverie import backup/ --dry-run",
    epilog=EXIT_CODES_HELP,
)
for command in (import_memories, import_mem0, import_hindsight):
    app.add_command(command)


@app.command("transcripts")
@click.argument(
    "paths",
    nargs=-1,
    type=click.Path(path_type=Path),
    metavar="[PATH...]",
    help="Transcript files, or folders that contain them.",
)
@click.option(
    "--agent", "agents", multiple=True, help="An agent, whose own folders on this machine are read."
)
@click.option("--project", help="The project; default: from the folder of each session.")
@click.option("--dry-run", is_flag=True, help="Count the turns, and stop.")
@common_options
def import_transcripts(
    options: CommonOptions,
    paths: tuple[Path, ...],
    agents: tuple[str, ...],
    project: str | None,
    dry_run: bool,
) -> None:
    """Import conversations of every agent that `reverie setup` knows, and of SpecStory.

    The format is detected from the files. A repeated import changes nothing.

    Example: reverie import transcripts --agent claude-code --agent cursor --dry-run

    Exit codes: 1 if a turn was refused; for the others see `reverie --help`.
    """
    import asyncio

    settings = options.settings()
    files = _find_transcripts((*paths, *_agent_folders(agents)))
    try:
        report = asyncio.run(_run_import(None if dry_run else settings, files, project))
    except KeyboardInterrupt:
        err().print("stopped; run it again to continue", markup=False)
        raise click.exceptions.Exit(FAILED) from None
    for note in () if options.json else report.notes:
        err().print(note, markup=False)
    counts = {"dry_run": dry_run, **vars(report)}
    options.print_result(counts, _format_report(counts))
    if report.rejected:
        raise click.exceptions.Exit(FAILED)


def _agent_folders(agents: tuple[str, ...]) -> list[Path]:
    """The folders of agents that exist. Raises `InvalidInput` for an agent that has none here."""
    from reverie.agent.coding_agents import transcript_paths
    from reverie.agent.setup.changes import require_supported_agent

    folders = []
    for agent in agents:
        require_supported_agent(agent)
        known = transcript_paths(agent, str(Path.home()), [str(Path.cwd())])
        found = [path for path in map(Path, known) if path.exists()]
        if not found:
            raise InvalidInput("--agent", f"{agent} has no conversations here: {', '.join(known)}")
        folders += found
    return folders


def _find_transcripts(paths: tuple[Path, ...]) -> TranscriptFiles:
    from reverie.agent.transcripts.files import find_transcripts

    files: TranscriptFiles = []
    if not paths:
        raise InvalidInput("PATH", "give a file, a folder, or --agent")
    for path in paths:
        if not path.exists():
            raise InvalidInput("PATH", f"there is no {path}")
        transcripts = list(find_transcripts(path))
        if not transcripts:
            raise InvalidInput("PATH", f"{path} holds no transcript of an agent that Reverie knows")
        files += transcripts
    return list(dict.fromkeys(files))


async def _run_import(
    settings: Settings | None, files: TranscriptFiles, project: str | None
) -> ImportReport:
    """Imports the files; without settings it only counts."""
    from reverie.agent.transcripts.importer import TranscriptImporter
    from reverie.client import ApiError

    if settings is None:
        return await _import_files(TranscriptImporter(None, project), files)
    async with open_client(settings, "reverie-import") as client:

        async def post(path: str, body: dict[str, Any]) -> tuple[int, Any]:
            try:
                response = await client.call("POST", path, body=body)
            except ApiError as error:
                return error.status, error.problem.model_dump(mode="json", exclude_none=True)
            return response.status, response.body

        return await _import_files(TranscriptImporter(post, project), files)


async def _import_files(importer: TranscriptImporter, files: TranscriptFiles) -> ImportReport:
    from reverie.agent.transcripts.importer import ImportStopped

    with show_progress("import", sum(path.stat().st_size for path, _ in files)) as advance:
        for path, transcript_format in files:
            try:
                await importer.import_file(path, transcript_format, advance)
            except ImportStopped as error:
                raise error_from_response(error.status, error.response) from None
    return importer.report


def _format_report(counts: dict[str, Any]) -> str:
    names = {
        "duplicates": "duplicates",
        "skipped": "skipped (read-only tool calls)",
        "redactions": "secrets redacted",
        "unreadable": "lines unreadable",
        "rejected": "rejected",
    }
    parts = [
        ", ".join(
            plural(counts[name], noun)
            for name, noun in (("files", "file"), ("sessions", "session"), ("accepted", "turn"))
        )
    ]
    parts += [f"{counts[name]} {words}" for name, words in names.items() if counts[name]]
    return ("would be read: " if counts["dry_run"] else "") + ", ".join(parts)
