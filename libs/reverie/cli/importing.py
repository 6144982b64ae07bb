"""`reverie import`: an export by default, or the transcripts of coding agents."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from reverie.cli.asking import refusal
from reverie.cli.carry import gateway_of, import_, progress
from reverie.cli.common import FAILED, Home, Json, Sets, err, out, print_json, settings_from
from reverie.domain.errors import Invalid

if TYPE_CHECKING:
    from reverie.agent.transcript_files import Format
    from reverie.agent.transcript_import import Import
    from reverie.runtime.settings import Settings

Found = list[tuple[Path, "Format"]]

DEFAULT = "memories"


class PathOrKind(TyperGroup):
    """What is no name of a command is a path of memories."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the default command before a path or an option."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=PathOrKind,
    no_args_is_help=True,
    help="Take in an export (`reverie import PATH`), or conversations.\n\n"
    "Example: [bold]reverie import memories/ --dry-run[/]",
)
app.command(DEFAULT)(import_)


@app.command("transcripts")
def transcripts(
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
    settings = settings_from(home, sets)
    found = _found(paths)
    try:
        done = asyncio.run(_work(None if dry_run else settings, found, project))
    except KeyboardInterrupt:
        err().print("stopped; run it again to go on", markup=False)
        raise typer.Exit(FAILED) from None
    report = done.report
    if json:
        print_json({"dry_run": dry_run, **vars(report)})
    else:
        for note in report.notes:
            err().print(note, markup=False)
        _print(vars(report), dry_run)
    if report.refused:
        raise typer.Exit(FAILED)


def _found(paths: list[Path]) -> Found:
    from reverie.agent.transcript_files import find_files

    found = []
    for path in paths:
        if not path.exists():
            raise Invalid("PATH", f"there is no {path}")
        here = list(find_files(path))
        if not here:
            raise Invalid(
                "PATH", f"{path} holds no transcript of Claude Code, Codex, Aider or SpecStory"
            )
        found += here
    return list(dict.fromkeys(found))


async def _work(settings: Settings | None, found: Found, project: str | None) -> Import:
    from reverie.agent.transcript_import import Import

    if settings is None:
        return await _all(Import(None, project), found)
    from reverie.client import Caller

    url, key = gateway_of(settings)
    async with Caller(
        url, key, timeout=settings.request_timeout, agent="reverie-import", ca=settings.authority
    ) as at:

        async def ask(path: str, body: dict[str, Any]) -> tuple[int, Any]:
            answer = await at.call("POST", path, body=body)
            return answer.status, answer.body

        return await _all(Import(ask, project), found)


async def _all(run: Import, found: Found) -> Import:
    from reverie.agent.transcript_import import Stopped

    with progress("import", sum(path.stat().st_size for path, _ in found)) as advance:
        for path, form in found:
            try:
                await run.take(path, form, advance)
            except Stopped as stopped:
                raise refusal(stopped.status, stopped.answer) from None
    return run


def _print(counts: dict[str, Any], dry_run: bool) -> None:
    would = "would be read: " if dry_run else ""
    told = f"{counts['files']} files, {counts['sessions']} sessions, {counts['accepted']} turns"
    more = [
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
    out().print(would + ", ".join([told, *more]), markup=False)
