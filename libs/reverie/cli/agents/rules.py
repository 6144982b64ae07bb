"""`reverie rules`: synchronizes the rule files of a project with its memories."""

from __future__ import annotations

import json as jsonlib
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.app.async_gateway import open_client
from reverie.cli.app.errors import EXIT_CODES_HELP, FAILED
from reverie.cli.app.options import common_options, dry_run_option, resolve_settings
from reverie.cli.app.output import err, out, print_json
from reverie.domain.core.errors import InvalidInput, ReverieError

if TYPE_CHECKING:
    from reverie.agent.rules.sync import ConflictPreference, RuleSync, SyncStep
    from reverie.runtime.settings.settings import Settings

Work = Callable[["RuleSync"], Awaitable[None]]
PrintSteps = Callable[[list["SyncStep"]], None]

DEBOUNCE_MS = 600

app = click.Group(
    "rules",
    help="Synchronize rule files (CLAUDE.md, AGENTS.md, ...) with memories.",
    epilog=EXIT_CODES_HELP,
)


@app.command("import")
@click.option(
    "--root",
    "-C",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default="here",
    help="The folder of the project.",
)
@click.option("--project", help="The project; default: the repository's name.")
@dry_run_option
@click.option(
    "--prefer", type=click.Choice(["file", "memory"]), help="The side that wins if both changed."
)
@common_options
def import_rules(
    root: Path,
    project: str | None,
    dry_run: bool,
    prefer: ConflictPreference | None,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Store the sections of all rule files, and forget removed sections.

    Example: reverie rules import --dry-run

    Exit codes: 1 if there are conflicts; for the others see `reverie --help`.
    """
    _run_and_print(
        _sync_factory(root, project, dry_run, prefer),
        resolve_settings(home, sets),
        json,
        _import_sections,
    )


@app.command("export")
@click.argument(
    "files", nargs=-1, metavar="[FILE...]", help="Rule files; default: those with a block."
)
@click.option(
    "--root",
    "-C",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default="here",
    help="The folder of the project.",
)
@click.option("--project", help="The project; default: the repository's name.")
@dry_run_option
@click.option(
    "--prefer", type=click.Choice(["file", "memory"]), help="The side that wins if both changed."
)
@common_options
def export_rules(
    files: tuple[str, ...],
    root: Path,
    project: str | None,
    dry_run: bool,
    prefer: ConflictPreference | None,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Write the project's conventions to a block of a rule file, and keep edits there.

    Example: reverie rules export AGENTS.md

    Exit codes: 1 if there are conflicts; for the others see `reverie --help`.
    """
    settings, create_sync = (
        resolve_settings(home, sets),
        _sync_factory(root, project, dry_run, prefer),
    )
    names = _rule_file_names(files, root.resolve(), required=True)
    _run_and_print(create_sync, settings, json, lambda run: _export_blocks(run, names))


@app.command("sync")
@click.argument(
    "files", nargs=-1, metavar="[FILE...]", help="Rule files; default: those with a block."
)
@click.option(
    "--root",
    "-C",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default="here",
    help="The folder of the project.",
)
@click.option("--project", help="The project; default: the repository's name.")
@dry_run_option
@click.option(
    "--prefer", type=click.Choice(["file", "memory"]), help="The side that wins if both changed."
)
@common_options
def sync_rules(
    files: tuple[str, ...],
    root: Path,
    project: str | None,
    dry_run: bool,
    prefer: ConflictPreference | None,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Import, then export.

    Example: reverie rules sync AGENTS.md

    Exit codes: 1 if there are conflicts; for the others see `reverie --help`.
    """
    settings, create_sync = (
        resolve_settings(home, sets),
        _sync_factory(root, project, dry_run, prefer),
    )
    names = _rule_file_names(files, root.resolve())
    _run_and_print(create_sync, settings, json, lambda run: _import_and_export(run, names))


@app.command("watch")
@click.option(
    "--root",
    "-C",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default="here",
    help="The folder of the project.",
)
@click.option("--project", help="The project; default: the repository's name.")
@common_options
def watch_rules(
    root: Path, project: str | None, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """Synchronize whenever a rule file changes, until Ctrl-C.

    With --json, it prints one line for each step.

    Example: reverie rules watch
    """
    settings, create_sync = resolve_settings(home, sets), _sync_factory(root, project, False, None)
    import asyncio

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

    class RuleFileFilter(DefaultFilter):
        def __call__(self, change: Any, path: str) -> bool:
            return super().__call__(change, path) and is_rule_file(root, Path(path))

    err().print(f"watching the rule files in {root}", markup=False)
    first = True
    # The first sync runs after the watch began, so that no change is missed.
    async for changes in awatch(
        root,
        watch_filter=RuleFileFilter(),
        debounce=DEBOUNCE_MS,
        rust_timeout=500,
        yield_on_timeout=True,
    ):
        if first or changes:
            await _sync_once(settings, create_sync, root, print_steps)
        first = False


async def _sync_once(
    settings: Settings, create_sync: Callable[[Any], RuleSync], root: Path, print_steps: PrintSteps
) -> None:
    """Synchronizes once. An error is printed; the next change tries again."""
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
    root: Path, project: str | None, dry_run: bool, prefer: ConflictPreference | None
) -> Callable[[Any], RuleSync]:
    from reverie.agent.git.project_detection import detect_project
    from reverie.agent.rules.sync import RuleSync
    from reverie.domain.access.scopes import slugify

    root_path = root.resolve()
    if not root_path.is_dir():
        raise InvalidInput("--root", f"{root} is not a folder")
    name = slugify(project or detect_project(str(root_path), None, os.environ).project)
    return lambda request: RuleSync(request, root_path, name, dry_run, prefer)


def _rule_file_names(files: Sequence[str], root: Path, required: bool = False) -> list[str]:
    from reverie.agent.rules.files import is_rule_file
    from reverie.agent.rules.sync import find_blocks

    for name in files:
        if not is_rule_file(root, root / name):
            raise InvalidInput("FILE", f"{name} is not a rule file")
    names = [Path(os.path.normpath(name)).as_posix() for name in files or find_blocks(root)]
    if required and not names:
        raise InvalidInput("FILE", "no rule file has a block yet: give one, such as AGENTS.md")
    return names


def remember_rule_files(root: Path, project: str, settings: Settings) -> list[SyncStep]:
    """Stores the sections of a project's rule files. Raises `Unavailable`."""
    import asyncio

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
    import asyncio

    run = asyncio.run(_run_sync(settings, create_sync, work))
    if json:
        print_json([vars(step) for step in run.steps])
    else:
        _print_steps(run.steps)
    if any(step.action in {"conflict", "refused"} for step in run.steps):
        raise click.exceptions.Exit(FAILED)


async def _run_sync(
    settings: Settings, create_sync: Callable[[Any], RuleSync], work: Work
) -> RuleSync:
    async with open_client(settings, "reverie-rules") as client:

        async def request(
            method: str,
            path: str,
            query: dict[str, Any],
            body: dict[str, Any] | None,
            version: int | None = None,
        ) -> Any:
            headers = {"If-Match": f'"{version}"'} if version is not None else {}
            return (await client.call(method, path, query=query, body=body, headers=headers)).body

        run = create_sync(request)
        await work(run)
        return run


def _print_json_lines(steps: list[SyncStep]) -> None:
    for step in steps:
        click.echo(jsonlib.dumps(vars(step)))


def _print_steps(steps: list[SyncStep]) -> None:
    for step in steps:
        location = f"{step.file}: " if step.file else ""
        reason = f" ({step.reason})" if step.reason else ""
        console = err() if step.action in {"conflict", "refused"} else out()
        subject = step.subject or "text above the first heading"
        console.print(f"{step.action:10} {location}{subject}{reason}", markup=False)
    if any(step.action == "conflict" for step in steps):
        err().print("conflicts were skipped: resolve them with --prefer file or --prefer memory")
