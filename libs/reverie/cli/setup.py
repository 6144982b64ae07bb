"""`reverie setup`: connecting a coding agent."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.common import Home, Json, out, print_json, settings_from, short_home
from reverie.domain.errors import Invalid

if TYPE_CHECKING:
    from reverie.agent.setup_agents import Place
    from reverie.agent.setup_files import Change


def setup(
    agent: Annotated[
        str | None, typer.Argument(help="The agent; without one, those that are known.")
    ] = None,
    user: Annotated[
        bool, typer.Option("--user", help="For all projects of yours, not this one alone.")
    ] = False,
    folder: Annotated[
        Path, typer.Option("--dir", "-C", help="The folder of the project.", show_default="here")
    ] = Path(),
    project: Annotated[
        str | None,
        typer.Option(
            "--project", envvar="REVERIE_PROJECT", help="Its name; unset: the repository's."
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take the setup back.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Connect a coding agent: its tools (MCP), its hooks or instructions.

    Shows what changes in which file and asks before it writes. What was
    there is kept, and --undo brings it back as it was.

    Example: [bold]reverie setup claude-code[/]
    """
    from reverie.agent.setup_agents import AGENTS
    from reverie.agent.setup_files import known, made, planned, take_back, undone

    if agent is None:
        print_json(list(AGENTS)) if json else out().print("\n".join(AGENTS), markup=False)
        return
    place = _place(folder, user, project)
    kept = settings_from(home, None).home / "setup"
    known(agent)
    changes = undone(agent, place, kept) if undo else planned(agent, place)
    if not json:
        _show(changes, undo)
    if changes and not yes and not json:
        typer.confirm("Write this?", abort=True)
    if not json or yes:
        (take_back if undo else made)(agent, place, changes, kept)
    if json:
        told = [{"path": str(one.path), "diff": one.diff} for one in changes]
        print_json({"agent": agent, "written": yes, "changes": told})


def _place(folder: Path, user: bool, project: str | None) -> Place:
    from reverie.agent.hook_place import where
    from reverie.agent.setup_agents import Place

    if not folder.is_dir():
        raise Invalid("--dir", f"{folder} is no folder")
    found = where(str(folder.resolve()), project, {})
    return Place(Path.home(), Path(found.root), found.project, user, _command())


def _command() -> str:
    """How an agent starts Reverie: by its name where it is on the path."""
    beside = Path(sys.executable).with_name("reverie")
    return str(beside) if not shutil.which("reverie") and beside.exists() else "reverie"


def _show(changes: list[Change], undo: bool) -> None:
    if not changes:
        out().print("Nothing to take back." if undo else "It is set up already.", markup=False)
    for change in changes:
        told = "" if change.diff else " nothing to change"
        out().print(f"{short_home(change.path)}:{told}", markup=False, style="bold")
        for line in change.diff.splitlines()[2:]:
            style = {"+": "green", "-": "red"}.get(line[:1])
            out().print(line, markup=False, style=style)
