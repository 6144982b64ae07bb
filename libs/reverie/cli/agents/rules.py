"""`reverie rules`: synchronizes the rule files of a project with its memories."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP, FAILED
from reverie.cli.app.gateway_client import open_client
from reverie.cli.app.options import (
    CommonOptions,
    Function,
    common_options,
    dry_run_option,
    folder_option,
)
from reverie.cli.app.output import err, out, print_json
from reverie.domain.core.errors import InvalidInput, ReverieError

if TYPE_CHECKING:
    from reverie.agent.rules.sync import ConflictPreference, RuleSync, SyncStep
    from reverie.runtime.settings.settings import Settings

CreateSync = Callable[[Any], "RuleSync"]
Work = Callable[["RuleSync"], Awaitable[None]]

DEBOUNCE_MS = 600

app = click.Group(
    "rules",
    help="Synchronize rule files (CLAUDE.md, AGENTS.md, ...) with memories.",
    epilog=EXIT_CODES_HELP,
)

files_argument = click.argument(
    "files", nargs=-1, metavar="[FILE...]", help="Rule files; default: those with a block."
)


def _project_options(function: Function) -> Function:
    project = click.option("--project", help="The project; default: the repository's name.")
    return folder_option("--root", "-C", help="The folder of the project.")(project(function))


def _sync_options(function: Function) -> Function:
    prefer = click.option(
        "--prefer",
        type=click.Choice(["file", "memory"]),
        help="The side that wins if both changed.",
    )
    return _project_options(dry_run_option(prefer(function)))


@app.command("import")
@_sync_options
@common_options
def import_rules(options: CommonOptions, **selection: Any) -> None:
    """Store the sections of all rule files, and forget removed sections.

    Example: reverie rules import --dry-run

    Exit codes: 1 if there are conflicts; for the others see `reverie --help`.
    """
    _run_and_print(options, _sync_factory(**selection), lambda run: run.import_sections())


@app.command("export")
@files_argument
@_sync_options
@common_options
def export_rules(
    options: CommonOptions, files: tuple[str, ...], root: Path, **selection: Any
) -> None:
    """Write the project's conventions to a block of a rule file, and keep edits there.

    Example: reverie rules export AGENTS.md

    Exit codes: 1 if there are conflicts; for the others see `reverie --help`.
    """
    create_sync = _sync_factory(root, **selection)
    names = _rule_file_names(files, root)
    if not names:
        raise InvalidInput("FILE", "no rule file has a block yet: give one, such as AGENTS.md")
    _run_and_print(options, create_sync, lambda run: _export_blocks(run, names))


@app.command("sync")
@files_argument
@_sync_options
@common_options
def sync_rules(
    options: CommonOptions, files: tuple[str, ...], root: Path, **selection: Any
) -> None:
    """Import, then export.

    Example: reverie rules sync AGENTS.md

    Exit codes: 1 if there are conflicts; for the others see `reverie --help`.
    """
    create_sync = _sync_factory(root, **selection)
    names = _rule_file_names(files, root)
    _run_and_print(options, create_sync, lambda run: _import_and_export(run, names))


@app.command("watch")
@_project_options
@common_options
def watch_rules(options: CommonOptions, root: Path, project: str | None) -> None:
    """Synchronize whenever a rule file changes, until Ctrl-C.

    With --json, it prints one line for each step.

    Example: reverie rules watch
    """
    import asyncio

    from reverie.agent.rules.sync import find_blocks

    settings, create_sync = options.settings(), _sync_factory(root, project)
    folder = root.resolve()

    async def synchronize(run: RuleSync) -> None:
        await _import_and_export(run, find_blocks(folder))

    async def watch() -> None:
        async for _ in _rule_file_changes(folder):
            try:
                steps = await _run_sync(settings, create_sync, synchronize)
            except ReverieError as error:
                err().print(f"reverie: {error}", markup=False)
                continue
            if not options.json:
                _print_steps(steps)
                continue
            for step in steps:
                print_json(vars(step), indent=None)

    with suppress(KeyboardInterrupt):
        asyncio.run(watch())


async def _rule_file_changes(root: Path) -> AsyncIterator[None]:
    """Yields once at the start, and after each change of a rule file."""
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
            yield
        first = False


def _sync_factory(
    root: Path,
    project: str | None,
    dry_run: bool = False,
    prefer: ConflictPreference | None = None,
) -> CreateSync:
    from reverie.agent.git.project_detection import detect_project
    from reverie.agent.rules.sync import RuleSync
    from reverie.domain.access.scopes import slugify

    root_path = root.resolve()
    if not root_path.is_dir():
        raise InvalidInput("--root", f"{root} is not a folder")
    name = slugify(project or detect_project(str(root_path), None, os.environ).project)
    return lambda request: RuleSync(request, root_path, name, dry_run, prefer)


def _rule_file_names(files: Sequence[str], root: Path) -> list[str]:
    """The given rule files, else those with a block. Raises `InvalidInput`."""
    from reverie.agent.rules.files import is_rule_file
    from reverie.agent.rules.sync import find_blocks

    folder = root.resolve()
    for name in files:
        if not is_rule_file(folder, folder / name):
            raise InvalidInput("FILE", f"{name} is not a rule file")
    return [Path(os.path.normpath(name)).as_posix() for name in files or find_blocks(folder)]


def remember_rule_files(root: Path, project: str, settings: Settings) -> list[SyncStep]:
    """Stores the sections of a project's rule files. Raises `Unavailable`."""
    import asyncio

    create_sync = _sync_factory(root, project)
    return asyncio.run(_run_sync(settings, create_sync, lambda run: run.import_sections()))


async def _export_blocks(run: RuleSync, names: list[str]) -> None:
    for name in names:
        await run.export_block(name)


async def _import_and_export(run: RuleSync, names: list[str]) -> None:
    await run.import_sections()
    await _export_blocks(run, names)


def _run_and_print(options: CommonOptions, create_sync: CreateSync, work: Work) -> None:
    import asyncio

    steps = asyncio.run(_run_sync(options.settings(), create_sync, work))
    if options.json:
        print_json([vars(step) for step in steps])
    else:
        _print_steps(steps)
    if any(step.action in {"conflict", "rejected"} for step in steps):
        raise click.exceptions.Exit(FAILED)


async def _run_sync(settings: Settings, create_sync: CreateSync, work: Work) -> list[SyncStep]:
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
        return run.steps


def _print_steps(steps: list[SyncStep]) -> None:
    for step in steps:
        location = f"{step.file}: " if step.file else ""
        reason = f" ({step.reason})" if step.reason else ""
        console = err() if step.action in {"conflict", "rejected"} else out()
        subject = step.subject or "text above the first heading"
        console.print(f"{step.action:10} {location}{subject}{reason}", markup=False)
    if any(step.action == "conflict" for step in steps):
        err().print("conflicts were skipped: resolve them with --prefer file or --prefer memory")
