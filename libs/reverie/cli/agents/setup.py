"""`reverie setup` connects a coding agent; `reverie hook` answers its hooks."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.app.common import Home, Json, abbreviate_home, out, print_json, resolve_settings
from reverie.domain.core.errors import InvalidInput


def hook(context: typer.Context) -> None:
    """Answer a hook of a coding agent; `reverie setup` configures it.

    Example: [bold]reverie hook SessionStart --project shop < event.json[/]
    """
    from reverie.agent.hooks.command import main

    raise typer.Exit(main(context.args))


if TYPE_CHECKING:
    from reverie.agent.setup.agents import SetupTarget
    from reverie.agent.setup.changes import SetupChange


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
    from reverie.agent.setup.agents import AGENTS
    from reverie.agent.setup.changes import (
        apply_setup,
        apply_undo,
        plan_setup,
        plan_undo,
        require_known_agent,
    )

    if agent is None:
        print_json(list(AGENTS)) if json else out().print("\n".join(AGENTS), markup=False)
        return
    location = _agent_location(folder, user, project)
    backup_folder = resolve_settings(home, None).home / "setup"
    require_known_agent(agent)
    changes = plan_undo(agent, location, backup_folder) if undo else plan_setup(agent, location)
    if not json:
        _print_changes(changes, undo)
    if changes and not yes and not json:
        typer.confirm("Write this?", abort=True)
    if not json or yes:
        (apply_undo if undo else apply_setup)(agent, location, changes, backup_folder)
    if json:
        change_documents = [{"path": str(change.path), "diff": change.diff} for change in changes]
        print_json({"agent": agent, "written": yes, "changes": change_documents})


def _agent_location(folder: Path, user: bool, project: str | None) -> SetupTarget:
    from reverie.agent.git.project_detection import detect_project
    from reverie.agent.setup.agents import SetupTarget

    if not folder.is_dir():
        raise InvalidInput("--dir", f"{folder} is no folder")
    repository = detect_project(str(folder.resolve()), project, {})
    return SetupTarget(
        Path.home(), Path(repository.root), repository.project, user, _reverie_command()
    )


def _reverie_command() -> str:
    """How an agent starts Reverie: by its name where it is on the path."""
    executable = Path(sys.executable).with_name("reverie")
    return str(executable) if not shutil.which("reverie") and executable.exists() else "reverie"


def _print_changes(changes: list[SetupChange], undo: bool) -> None:
    if not changes:
        out().print("Nothing to take back." if undo else "It is set up already.", markup=False)
    for change in changes:
        suffix = "" if change.diff else " nothing to change"
        out().print(f"{abbreviate_home(change.path)}:{suffix}", markup=False, style="bold")
        for line in change.diff.splitlines()[2:]:
            style = {"+": "green", "-": "red"}.get(line[:1])
            out().print(line, markup=False, style=style)
