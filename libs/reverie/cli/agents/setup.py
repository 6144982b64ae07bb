"""`reverie setup` connects a coding agent; `reverie hook` answers its hooks."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.app.options import home_option, json_option, resolve_settings, yes_option
from reverie.cli.app.output import abbreviate_home, out, print_json
from reverie.domain.core.errors import InvalidInput


@click.command("hook", context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, help="The event and its options.")
def hook(arguments: tuple[str, ...]) -> None:
    """Handle a hook event of a coding agent; `reverie setup` configures it.

    Example: reverie hook SessionStart --project shop < event.json
    """
    from reverie.agent.hooks.command import main

    raise click.exceptions.Exit(main(arguments))


if TYPE_CHECKING:
    from reverie.agent.setup.agents import SetupTarget
    from reverie.agent.setup.changes import SetupChange


@click.command("setup")
@click.argument(
    "agent", required=False, help="The coding agent; without it, list the supported ones."
)
@click.option("--user", is_flag=True, help="Set up for all projects of this user.")
@click.option(
    "--dir",
    "-C",
    "folder",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default="here",
    help="The folder of the project.",
)
@click.option(
    "--project", envvar="REVERIE_PROJECT", help="The project's name; default: the repository's."
)
@click.option("--undo", is_flag=True, help="Undo an earlier setup.")
@yes_option
@home_option
@json_option
def setup(
    agent: str | None,
    user: bool,
    folder: Path,
    project: str | None,
    undo: bool,
    yes: bool,
    home: Path | None,
    json: bool,
) -> None:
    """Connect a coding agent: MCP tools, hooks or instructions.

    It shows the changes of each file and asks before it writes. --undo restores
    the earlier files.

    Example: reverie setup claude-code
    """
    from reverie.agent.setup.agents import AGENTS

    if agent is None:
        print_json(list(AGENTS)) if json else out().print("\n".join(AGENTS), markup=False)
    else:
        set_up_agent(agent, folder, project, user=user, undo=undo, yes=yes, home=home, json=json)


def set_up_agent(
    agent: str,
    folder: Path,
    project: str | None,
    *,
    user: bool = False,
    undo: bool = False,
    yes: bool = False,
    home: Path | None = None,
    json: bool = False,
) -> None:
    """Shows the changes that set up an agent, asks, and writes them."""
    from reverie.agent.setup.changes import (
        apply_setup,
        apply_undo,
        plan_setup,
        plan_undo,
        require_known_agent,
    )

    location = _agent_location(folder, user, project)
    backup_folder = resolve_settings(home, ()).home / "setup"
    require_known_agent(agent)
    changes = plan_undo(agent, location, backup_folder) if undo else plan_setup(agent, location)
    if not json:
        _print_changes(changes, undo)
    if changes and not yes and not json:
        click.confirm("Write these changes?", abort=True)
    if not json or yes:
        (apply_undo if undo else apply_setup)(agent, location, changes, backup_folder)
    if json:
        change_documents = [{"path": str(change.path), "diff": change.diff} for change in changes]
        print_json({"agent": agent, "written": yes, "changes": change_documents})


def _agent_location(folder: Path, user: bool, project: str | None) -> SetupTarget:
    from reverie.agent.git.project_detection import detect_project
    from reverie.agent.setup.agents import SetupTarget

    if not folder.is_dir():
        raise InvalidInput("--dir", f"{folder} is not a folder")
    repository = detect_project(str(folder.resolve()), project, {})
    return SetupTarget(
        Path.home(), Path(repository.root), repository.project, user, _reverie_command()
    )


def _reverie_command() -> str:
    """The command that starts Reverie: its name if it is on the path."""
    executable = Path(sys.executable).with_name("reverie")
    return str(executable) if not shutil.which("reverie") and executable.exists() else "reverie"


def _print_changes(changes: list[SetupChange], undo: bool) -> None:
    if not changes:
        out().print("There is no setup to undo." if undo else "It is set up already.", markup=False)
    for change in changes:
        suffix = "" if change.diff else " nothing to change"
        out().print(f"{abbreviate_home(change.path)}:{suffix}", markup=False, style="bold")
        for line in change.diff.splitlines()[2:]:
            style = {"+": "green", "-": "red"}.get(line[:1])
            out().print(line, markup=False, style=style)
