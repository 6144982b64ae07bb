"""`reverie init`: makes a folder a project."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from reverie.cli.common import Json, err, print_json
from reverie.cli.shown import show
from reverie.domain.errors import Conflict, Misconfigured

Name = Annotated[str | None, typer.Argument(help="Its name; unset: the repository's.")]
Agents = Annotated[
    list[str] | None, typer.Option("--agent", help="A coding agent to set up; may be repeated.")
]
Folder = Annotated[
    Path, typer.Option("--dir", "-C", help="A folder of the project.", show_default="here")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def init(
    name: Name = None,
    agent: Agents = None,
    folder: Folder = Path(),
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Make a folder a project: its reverie.toml, its agents.

    The file is read by every command and agent that works below it. It
    holds no key: commit it.

    Example: [bold]reverie init shop --agent claude-code[/]
    """
    from reverie.cli.near import named_in
    from reverie.domain.scopes import slug
    from reverie.runtime.project_file import project_file

    file = project_file(folder)
    stands = named_in(folder)
    project = slug(name or stands or _repository(file.parent))
    if stands and slug(stands) != project:
        raise Conflict(f"{file} names the project {stands}: change it there")
    if not stands:
        _write(file, project)
    done = {"project": project, "file": str(file), "written": not stands}
    if json:
        print_json(done)
    else:
        show(f"{file}: project {project}{'' if done['written'] else ', as before'}")
    _set_up(agent, file.parent, project, yes, json)


def _repository(folder: Path) -> str:
    """The name of a folder's repository; of none, the folder's own."""
    from reverie.agent.hook_place import where

    return where(str(folder), None, os.environ).project


def _write(file: Path, project: str) -> None:
    """Puts the project in front of what the file holds."""
    try:
        rest = file.read_text("utf-8") if file.exists() else ""
        file.write_text(f'project = "{project}"\n{rest}', "utf-8")
    except OSError as error:
        raise Misconfigured(str(file), f"cannot be written: {error.strerror}") from None


def _set_up(agents: list[str] | None, folder: Path, project: str, yes: bool, json: bool) -> None:
    """Sets up the agents that are named, or on a terminal asks which."""
    from reverie.cli.setup import setup

    asked = sys.stdin.isatty() and not yes and not json
    if agents is None and asked:
        said = typer.prompt("Coding agent to set up (none: empty)", default="", err=True)
        agents = said.replace(",", " ").split()
    for one in agents or ():
        setup(one, folder=folder, project=project, yes=yes, json=json)
    if not agents and not json:
        err().print("An agent is set up by `reverie setup AGENT`.", style="dim")
