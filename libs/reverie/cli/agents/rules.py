"""`reverie agent-files`: synchronizes the rule files of a project with its memories."""

from __future__ import annotations

import asyncio
import json as jsonlib
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.app.common import FAILED, Home, Json, Sets, err, out, print_json, resolve_settings
from reverie.cli.memory.export_import import endpoint_from_settings
from reverie.domain.core.errors import InvalidInput, ReverieError

if TYPE_CHECKING:
    from reverie.agent.rules.sync import ConflictPreference, RuleSync, SyncStep
    from reverie.runtime.settings.settings import Settings

Work = Callable[["RuleSync"], Awaitable[None]]
PrintSteps = Callable[[list["SyncStep"]], None]

DEBOUNCE_MS = 600

app = typer.Typer(
    no_args_is_help=True,
    help="Hold CLAUDE.md, AGENTS.md and the like together with what is remembered.",
)


class PreferredSide(StrEnum):
    """Which side decides a conflict."""

    FILE = "file"
    MEMORY = "memory"


Root = Annotated[
    Path, typer.Option("--root", "-C", help="The folder of the project.", show_default="here")
]
Project = Annotated[
    str | None, typer.Option("--project", help="Whose memories; unset: the repository's name.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen; change nothing.")]
PreferOption = Annotated[
    PreferredSide | None, typer.Option("--prefer", help="Which side wins where both changed.")
]
Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE...]", help="Unset: those that have a block already."),
]


@app.command("import")
def import_rules(
    root: Root = Path(),
    project: Project = None,
    dry_run: DryRun = False,
    prefer: PreferOption = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Remember the sections of all rule files, and forget those that are gone from them.

    Example: [bold]reverie agent-files import --dry-run[/]

    Exit codes: 1 where there are conflicts; the others as `reverie --help` tells.
    """
    _run_and_print(
        _sync_factory(root, project, dry_run, prefer),
        resolve_settings(home, sets),
        json,
        _import_sections,
    )


@app.command("export")
def export_rules(
    files: Files = None,
    root: Root = Path(),
    project: Project = None,
    dry_run: DryRun = False,
    prefer: PreferOption = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Write the project's conventions and preferences to a block of a file; edits there are kept.

    Example: [bold]reverie agent-files export AGENTS.md[/]

    Exit codes: 1 where there are conflicts; the others as `reverie --help` tells.
    """
    settings, create_sync = (
        resolve_settings(home, sets),
        _sync_factory(root, project, dry_run, prefer),
    )
    names = _rule_file_names(files, root.resolve(), required=True)
    _run_and_print(create_sync, settings, json, lambda run: _export_blocks(run, names))


@app.command("sync")
def sync_rules(
    files: Files = None,
    root: Root = Path(),
    project: Project = None,
    dry_run: DryRun = False,
    prefer: PreferOption = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Import, then export: both ways.

    Example: [bold]reverie agent-files sync AGENTS.md[/]

    Exit codes: 1 where there are conflicts; the others as `reverie --help` tells.
    """
    settings, create_sync = (
        resolve_settings(home, sets),
        _sync_factory(root, project, dry_run, prefer),
    )
    names = _rule_file_names(files, root.resolve())
    _run_and_print(create_sync, settings, json, lambda run: _import_and_export(run, names))


@app.command("watch")
def watch_rules(
    root: Root = Path(),
    project: Project = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Sync whenever a rule file was written. End it with Ctrl-C.

    With --json each step is a line of its own.

    Example: [bold]reverie agent-files watch[/]
    """
    settings, create_sync = resolve_settings(home, sets), _sync_factory(root, project, False, None)
    with suppress(KeyboardInterrupt):
        asyncio.run(
            _watch_rule_files(
                settings, create_sync, root.resolve(), _print_json_lines if json else _print_steps
            )
        )


async def _watch_rule_files(
    settings: Settings, create_sync: Callable[[Any], RuleSync], root: Path, print_steps: PrintSteps
) -> None:
    from watchfiles import DefaultFilter, awatch

    from reverie.agent.rules.files import is_rule_file

    class Rules(DefaultFilter):
        def __call__(self, change: Any, path: str) -> bool:
            return super().__call__(change, path) and is_rule_file(root, Path(path))

    err().print(f"watching the rule files in {root}", markup=False)
    first = True
    # The first sync comes when the watch has begun, so that no change falls between the two.
    async for changes in awatch(
        root, watch_filter=Rules(), debounce=DEBOUNCE_MS, rust_timeout=500, yield_on_timeout=True
    ):
        if first or changes:
            await _sync_once(settings, create_sync, root, print_steps)
        first = False


async def _sync_once(
    settings: Settings, create_sync: Callable[[Any], RuleSync], root: Path, print_steps: PrintSteps
) -> None:
    """One sync; what fails is told, and tried again with the next change."""
    from reverie.agent.rules.sync import find_blocks

    try:
        run = await _run_sync(
            settings, create_sync, lambda run: _import_and_export(run, find_blocks(root))
        )
    except ReverieError as error:
        err().print(f"reverie: {error}", markup=False)
    else:
        print_steps(run.steps)


def _sync_factory(
    root: Path, project: str | None, dry_run: bool, prefer: PreferredSide | None
) -> Callable[[Any], RuleSync]:
    from reverie.agent.git.project_detection import detect_project
    from reverie.agent.rules.sync import RuleSync
    from reverie.domain.access.scopes import slugify

    root_path = root.resolve()
    if not root_path.is_dir():
        raise InvalidInput("--root", f"{root} is no folder")
    name = slugify(project or detect_project(str(root_path), None, os.environ).project)
    side: ConflictPreference | None = None
    if prefer is not None:
        side = "file" if prefer is PreferredSide.FILE else "memory"
    return lambda request: RuleSync(request, root_path, name, dry_run, side)


def _rule_file_names(files: list[str] | None, root: Path, required: bool = False) -> list[str]:
    from reverie.agent.rules.files import is_rule_file
    from reverie.agent.rules.sync import find_blocks

    for name in files or ():
        if not is_rule_file(root, root / name):
            raise InvalidInput("FILE", f"{name} is no file that agents read for rules")
    names = [Path(os.path.normpath(name)).as_posix() for name in files or find_blocks(root)]
    if required and not names:
        raise InvalidInput("FILE", "no file has a block yet: name one, as AGENTS.md")
    return names


def remember_rule_files(root: Path, project: str, settings: Settings) -> list[SyncStep]:
    """Remembers the sections of a project's rule files; what was done. Raises `Unavailable`."""
    return asyncio.run(
        _run_sync(settings, _sync_factory(root, project, False, None), _import_sections)
    ).steps


async def _import_sections(run: RuleSync) -> None:
    await run.import_sections()


async def _export_blocks(run: RuleSync, names: list[str]) -> None:
    for name in names:
        await run.export_block(name)


async def _import_and_export(run: RuleSync, names: list[str]) -> None:
    await run.import_sections()
    await _export_blocks(run, names)


def _run_and_print(
    create_sync: Callable[[Any], RuleSync], settings: Settings, json: bool, work: Work
) -> None:
    run = asyncio.run(_run_sync(settings, create_sync, work))
    if json:
        print_json([vars(step) for step in run.steps])
    else:
        _print_steps(run.steps)
    if any(step.what in {"conflict", "refused"} for step in run.steps):
        raise typer.Exit(FAILED)


async def _run_sync(
    settings: Settings, create_sync: Callable[[Any], RuleSync], work: Work
) -> RuleSync:
    from reverie.client import AsyncReverie

    url, key = endpoint_from_settings(settings)
    async with AsyncReverie(
        url,
        key,
        timeout=settings.request_timeout,
        agent="reverie-files",
        ca=settings.trusted_ca_file,
    ) as client:

        async def ask(
            method: str,
            path: str,
            query: dict[str, Any],
            body: dict[str, Any] | None,
            version: int | None = None,
        ) -> Any:
            headers = {"If-Match": f'"{version}"'} if version is not None else {}
            return (await client.call(method, path, query=query, body=body, headers=headers)).body

        run = create_sync(ask)
        await work(run)
        return run


def _print_json_lines(steps: list[SyncStep]) -> None:
    for step in steps:
        typer.echo(jsonlib.dumps(vars(step)))


def _print_steps(steps: list[SyncStep]) -> None:
    for step in steps:
        location = f"{step.file}: " if step.file else ""
        reason = f" ({step.why})" if step.why else ""
        console = err() if step.what in {"conflict", "refused"} else out()
        subject = step.about or "what stands above the first heading"
        console.print(f"{step.what:10} {location}{subject}{reason}", markup=False)
    if any(step.what == "conflict" for step in steps):
        err().print("nothing was done about conflicts: --prefer file or memory decides them")
