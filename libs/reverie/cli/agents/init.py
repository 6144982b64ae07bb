"""`reverie init`: writes a project's reverie.toml, and sets up its agents."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.app.common import Home, Json, Sets, err, print_json, resolve_settings
from reverie.cli.app.output import print_plain, print_warnings
from reverie.domain.core.errors import Conflict, Misconfigured

if TYPE_CHECKING:
    from reverie.agent.rules.sync import SyncStep

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
    from reverie.cli.app.gateway_discovery import read_project_name
    from reverie.domain.access.scopes import slugify
    from reverie.runtime.settings.project_file import find_project_file

    file = find_project_file(folder)
    existing = read_project_name(folder)
    project = slugify(name or existing or _repository_name(file.parent))
    if existing and slugify(existing) != project:
        raise Conflict(f"{file} names the project {existing}: change it there")
    if not existing:
        _write_project(file, project)
    interactive = sys.stdin.isatty() and not yes and not json
    result: dict[str, Any] = {"project": project, "file": str(file), "written": not existing}
    if not json:
        print_plain(f"{file}: project {project}{'' if result['written'] else ', as before'}")
    if _should_import_files(files, file.parent, interactive):
        steps = _remember_files(file.parent, project, home, sets)
        result["remembered"] = sum(step.what == "remembered" for step in steps)
        result["refused"] = [f"{step.file}: {step.why}" for step in steps if step.what == "refused"]
        if not json:
            print_plain(f"remembered {result['remembered']} sections of its agent files")
            print_warnings(result["refused"])
    if json:
        print_json(result)
    _set_up_agents(agent, file.parent, project, yes, json, interactive)


def _repository_name(folder: Path) -> str:
    """The name of a folder's repository; of none, the folder's own."""
    from reverie.agent.git.project_detection import detect_project

    return detect_project(str(folder), None, os.environ).project


def _write_project(file: Path, project: str) -> None:
    """Puts the project in front of what the file holds."""
    try:
        rest = file.read_text("utf-8") if file.exists() else ""
        file.write_text(f'project = "{project}"\n{rest}', "utf-8")
    except OSError as error:
        raise Misconfigured(str(file), f"cannot be written: {error.strerror}") from None


def _should_import_files(requested: bool | None, folder: Path, interactive: bool) -> bool:
    """Whether the project's agent files are to be remembered; asked where that was not said."""
    from reverie.agent.rules.files import iter_rule_files

    names = [file.relative_to(folder).as_posix() for file in iter_rule_files(folder)]
    if not names or requested is not None:
        return bool(names and requested)
    if interactive:
        return typer.confirm(f"Remember what {', '.join(names)} say?", default=True, err=True)
    err().print(f"`reverie init --import-files` remembers {', '.join(names)}.", style="dim")
    return False


def _remember_files(
    folder: Path, project: str, home: Path | None, sets: list[str] | None
) -> list[SyncStep]:
    from reverie.cli.agents.rules import remember_rule_files

    return remember_rule_files(folder, project, resolve_settings(home, sets))


def _set_up_agents(
    agents: list[str] | None, folder: Path, project: str, yes: bool, json: bool, interactive: bool
) -> None:
    """Sets up the agents that are named, or on a terminal asks which."""
    from reverie.cli.agents.setup import setup

    if agents is None and interactive:
        answer = typer.prompt("Coding agent to set up (none: empty)", default="", err=True)
        agents = answer.replace(",", " ").split()
    for agent in agents or ():
        setup(agent, folder=folder, project=project, yes=yes, json=json)
    if not agents and not json:
        err().print("An agent is set up by `reverie setup AGENT`.", style="dim")
