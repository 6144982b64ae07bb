"""`reverie agent-files`: the rule files of a project and its memories, held together."""

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

from reverie.cli.carry import gateway_of
from reverie.cli.common import FAILED, Home, Json, Sets, err, out, print_json, settings_from
from reverie.domain.errors import Invalid, ReverieError

if TYPE_CHECKING:
    from reverie.agent.rule_sync import Prefer, Step, Sync
    from reverie.runtime.settings import Settings

Work = Callable[["Sync"], Awaitable[None]]
Tell = Callable[[list["Step"]], None]

DEBOUNCE_MS = 600

app = typer.Typer(
    no_args_is_help=True,
    help="Hold CLAUDE.md, AGENTS.md and the like together with what is remembered.",
)


class Side(StrEnum):
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
    Side | None, typer.Option("--prefer", help="Which side wins where both changed.")
]
Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE...]", help="Unset: those that have a block already."),
]


@app.command("import")
def import_(
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
    _run(_sync(root, project, dry_run, prefer), settings_from(home, sets), json, _take_in)


@app.command("export")
def export(
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
    settings, make = settings_from(home, sets), _sync(root, project, dry_run, prefer)
    names = _named(files, root.resolve(), asked=True)
    _run(make, settings, json, lambda run: _give_out(run, names))


@app.command("sync")
def sync(
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
    settings, make = settings_from(home, sets), _sync(root, project, dry_run, prefer)
    names = _named(files, root.resolve())
    _run(make, settings, json, lambda run: _both(run, names))


@app.command("watch")
def watch(
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
    settings, make = settings_from(home, sets), _sync(root, project, False, None)
    with suppress(KeyboardInterrupt):
        asyncio.run(_watch(settings, make, root.resolve(), _print_lines if json else _print))


async def _watch(settings: Settings, make: Callable[[Any], Sync], root: Path, tell: Tell) -> None:
    from watchfiles import DefaultFilter, awatch

    from reverie.agent.rule_files import is_rule_file

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
            await _once(settings, make, root, tell)
        first = False


async def _once(settings: Settings, make: Callable[[Any], Sync], root: Path, tell: Tell) -> None:
    """One sync; what fails is told, and tried again with the next change."""
    from reverie.agent.rule_sync import blocks_in

    try:
        run = await _work(settings, make, lambda run: _both(run, blocks_in(root)))
    except ReverieError as error:
        err().print(f"reverie: {error}", markup=False)
    else:
        tell(run.steps)


def _sync(
    root: Path, project: str | None, dry_run: bool, prefer: Side | None
) -> Callable[[Any], Sync]:
    from reverie.agent.hook_place import where
    from reverie.agent.rule_sync import Sync
    from reverie.domain.scopes import slug

    full = root.resolve()
    if not full.is_dir():
        raise Invalid("--root", f"{root} is no folder")
    name = slug(project or where(str(full), None, os.environ).project)
    side: Prefer | None = None
    if prefer is not None:
        side = "file" if prefer is Side.FILE else "memory"
    return lambda ask: Sync(ask, full, name, dry_run, side)


def _named(files: list[str] | None, root: Path, asked: bool = False) -> list[str]:
    from reverie.agent.rule_files import is_rule_file
    from reverie.agent.rule_sync import blocks_in

    for name in files or ():
        if not is_rule_file(root, root / name):
            raise Invalid("FILE", f"{name} is no file that agents read for rules")
    names = [Path(os.path.normpath(name)).as_posix() for name in files or blocks_in(root)]
    if asked and not names:
        raise Invalid("FILE", "no file has a block yet: name one, as AGENTS.md")
    return names


def remember_files(root: Path, project: str, settings: Settings) -> list[Step]:
    """Remembers the sections of a project's rule files; what was done. Raises `Unavailable`."""
    return asyncio.run(_work(settings, _sync(root, project, False, None), _take_in)).steps


async def _take_in(run: Sync) -> None:
    await run.take_in()


async def _give_out(run: Sync, names: list[str]) -> None:
    for name in names:
        await run.give_out(name)


async def _both(run: Sync, names: list[str]) -> None:
    await run.take_in()
    await _give_out(run, names)


def _run(make: Callable[[Any], Sync], settings: Settings, json: bool, work: Work) -> None:
    run = asyncio.run(_work(settings, make, work))
    if json:
        print_json([vars(step) for step in run.steps])
    else:
        _print(run.steps)
    if any(step.what in {"conflict", "refused"} for step in run.steps):
        raise typer.Exit(FAILED)


async def _work(settings: Settings, make: Callable[[Any], Sync], work: Work) -> Sync:
    from reverie.client import AsyncReverie

    url, key = gateway_of(settings)
    async with AsyncReverie(
        url, key, timeout=settings.request_timeout, agent="reverie-files", ca=settings.authority
    ) as at:

        async def ask(
            method: str,
            path: str,
            query: dict[str, Any],
            body: dict[str, Any] | None,
            version: int | None = None,
        ) -> Any:
            headers = {"If-Match": f'"{version}"'} if version is not None else {}
            return (await at.call(method, path, query=query, body=body, headers=headers)).body

        run = make(ask)
        await work(run)
        return run


def _print_lines(steps: list[Step]) -> None:
    for step in steps:
        typer.echo(jsonlib.dumps(vars(step)))


def _print(steps: list[Step]) -> None:
    for step in steps:
        place = f"{step.file}: " if step.file else ""
        why = f" ({step.why})" if step.why else ""
        console = err() if step.what in {"conflict", "refused"} else out()
        about = step.about or "what stands above the first heading"
        console.print(f"{step.what:10} {place}{about}{why}", markup=False)
    if any(step.what == "conflict" for step in steps):
        err().print("nothing was done about conflicts: --prefer file or memory decides them")
