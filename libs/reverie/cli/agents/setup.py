"""`reverie setup` connects a coding agent; `reverie hook` answers its hooks."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.app.options import CommonOptions, common_options, folder_option, yes_option
from reverie.cli.app.output import abbreviate_home, out
from reverie.domain.core.errors import InvalidInput

if TYPE_CHECKING:
    from reverie.agent.setup.changes import SetupChange


@click.command("hook", context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, help="The event and its options.")
def hook(arguments: tuple[str, ...]) -> None:
    """Handle a hook event of a coding agent; `reverie setup` configures it.

    Example: reverie hook SessionStart --project shop < event.json
    """
    from reverie.agent.hooks.command import main

    raise click.exceptions.Exit(main(arguments))


@click.command("setup")
@click.argument(
    "agent", required=False, help="The coding agent; without it, list the supported ones."
)
@click.option("--user", is_flag=True, help="Set up for all projects of this user.")
@folder_option("--dir", "-C", "folder", help="The folder of the project.")
@click.option(
    "--project", envvar="REVERIE_PROJECT", help="The project's name; default: the repository's."
)
@click.option("--undo", is_flag=True, help="Undo an earlier setup.")
@yes_option
@common_options
def setup(options: CommonOptions, agent: str | None, folder: Path, **choices: Any) -> None:
    """Connect a coding agent: MCP tools, hooks or instructions.

    It shows the changes of each file and asks before it writes. --undo restores
    the earlier files.

    Example: reverie setup claude-code
    """
    from reverie.agent.setup.agents import AGENTS

    if agent is None:
        options.print_result(list(AGENTS), *AGENTS)
    else:
        set_up_agent(options, agent, folder, **choices)


def set_up_agent(
    options: CommonOptions,
    agent: str,
    folder: Path,
    project: str | None,
    *,
    yes: bool,
    user: bool = False,
    undo: bool = False,
) -> None:
    """Shows the changes that set up an agent, asks, and writes them."""
    from reverie.agent.git.project_detection import detect_project
    from reverie.agent.setup.agents import SetupTarget
    from reverie.agent.setup.changes import (
        apply_setup,
        apply_undo,
        plan_setup,
        plan_undo,
        require_known_agent,
    )

    if not folder.is_dir():
        raise InvalidInput("--dir", f"{folder} is not a folder")
    require_known_agent(agent)
    repository = detect_project(str(folder.resolve()), project, {})
    root = Path(repository.root)
    target = SetupTarget(Path.home(), root, repository.project, user, _reverie_command())
    backup_folder = options.settings().home / "setup"
    changes = plan_undo(agent, target, backup_folder) if undo else plan_setup(agent, target)
    if not options.json:
        _print_changes(changes, undo)
    if changes and not yes and not options.json:
        click.confirm("Write these changes?", abort=True)
    if not options.json or yes:
        (apply_undo if undo else apply_setup)(agent, target, changes, backup_folder)
    documents = [{"path": str(change.path), "diff": change.diff} for change in changes]
    done = [f"{'Undone' if undo else 'Written'}. Restart {agent}."] if changes else []
    options.print_result({"agent": agent, "written": yes, "changes": documents}, *done)


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
