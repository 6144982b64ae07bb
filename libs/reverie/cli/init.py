"""`reverie init`: makes a folder a project."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.common import Home, Json, Sets, err, print_json, settings_from
from reverie.cli.shown import show, warn
from reverie.domain.errors import Conflict, Misconfigured

if TYPE_CHECKING:
    from reverie.agent.rule_sync import Step

Name = Annotated[str | None, typer.Argument(help="Its name; unset: the repository's.")]
Agents = Annotated[
    list[str] | None, typer.Option("--agent", help="A coding agent to set up; may be repeated.")
]
Folder = Annotated[
    Path, typer.Option("--dir", "-C", help="A folder of the project.", show_default="here")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Files = Annotated[
    bool | None,
    typer.Option(
        "--import-files/--no-import-files",
        help="Remember what CLAUDE.md, AGENTS.md and the like say; unset: asked on a terminal.",
        show_default=False,
    ),
]


def init(
    name: Name = None,
    agent: Agents = None,
    folder: Folder = Path(),
    files: Files = None,
    yes: Yes = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Make a folder a project: its reverie.toml, its agents, what its files tell them.

    The file is read by every command and agent that works below it. It
    holds no key: commit it.

    Example: [bold]reverie init shop --import-files --agent claude-code[/]
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
    asked = sys.stdin.isatty() and not yes and not json
    done: dict[str, Any] = {"project": project, "file": str(file), "written": not stands}
    if not json:
        show(f"{file}: project {project}{'' if done['written'] else ', as before'}")
    if _wants_files(files, file.parent, asked):
        steps = _remember(file.parent, project, home, sets)
        done["remembered"] = sum(step.what == "remembered" for step in steps)
        done["refused"] = [f"{step.file}: {step.why}" for step in steps if step.what == "refused"]
        if not json:
            show(f"remembered {done['remembered']} sections of its agent files")
            warn(done["refused"])
    if json:
        print_json(done)
    _set_up(agent, file.parent, project, yes, json, asked)


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


def _wants_files(wanted: bool | None, folder: Path, asked: bool) -> bool:
    """Whether the project's agent files are to be remembered; asked where that was not said."""
    from reverie.agent.rule_files import rule_files

    found = [file.relative_to(folder).as_posix() for file in rule_files(folder)]
    if not found or wanted is not None:
        return bool(found and wanted)
    if asked:
        return typer.confirm(f"Remember what {', '.join(found)} say?", default=True, err=True)
    err().print(f"`reverie init --import-files` remembers {', '.join(found)}.", style="dim")
    return False


def _remember(folder: Path, project: str, home: Path | None, sets: list[str] | None) -> list[Step]:
    from reverie.cli.agent_files import remember_files

    return remember_files(folder, project, settings_from(home, sets))


def _set_up(
    agents: list[str] | None, folder: Path, project: str, yes: bool, json: bool, asked: bool
) -> None:
    """Sets up the agents that are named, or on a terminal asks which."""
    from reverie.cli.setup import setup

    if agents is None and asked:
        said = typer.prompt("Coding agent to set up (none: empty)", default="", err=True)
        agents = said.replace(",", " ").split()
    for one in agents or ():
        setup(one, folder=folder, project=project, yes=yes, json=json)
    if not agents and not json:
        err().print("An agent is set up by `reverie setup AGENT`.", style="dim")
