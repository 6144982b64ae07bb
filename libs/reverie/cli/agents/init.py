"""`reverie init`: writes a project's reverie.toml, and sets up its agents."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from reverie.cli.app.options import (
    CommonOptions,
    common_options,
    folder_option,
    yes_option,
)
from reverie.cli.app.output import confirm, err, plural, print_plain, print_warnings
from reverie.domain.core.errors import Conflict, InvalidInput, Misconfigured


@click.command("init")
@click.argument("name", required=False, help="The project's name; default: the repository's.")
@click.option("--agent", multiple=True, help="A coding agent to set up; may be repeated.")
@folder_option("--dir", "-C", "folder", help="A folder of the project.")
@click.option(
    "--import-files/--no-import-files",
    "files",
    default=None,
    show_default=False,
    help="Whether to store the sections of CLAUDE.md, AGENTS.md and the like; default: ask.",
)
@yes_option
@common_options
def init(
    options: CommonOptions,
    name: str | None,
    agent: tuple[str, ...],
    folder: Path,
    files: bool | None,
    yes: bool,
) -> None:
    """Make a folder a project: write reverie.toml, set up agents, import rule files.

    Every command and agent below the folder reads reverie.toml. It contains no
    key, so commit it.

    Example: reverie init shop --import-files --agent claude-code
    """
    from reverie.agent.clone_paths import replace_atomically, resolve_inside
    from reverie.agent.git.project_detection import detect_project
    from reverie.agent.watch.known_clones import remember_clone
    from reverie.cli.agents.setup import set_up_agent
    from reverie.domain.access.scopes import slugify
    from reverie.runtime.settings.project_file import load_project_file

    _check_name(name)
    project_file = load_project_file(folder)
    file, existing = Path(project_file.path), project_file.project
    project = slugify(
        name or existing or detect_project(str(file.parent), None, os.environ).project
    )
    if existing and existing != project:
        raise Conflict(f"{file} already names the project {existing}")
    if not existing:
        try:
            file = resolve_inside(file.parent, file)
            rest = file.read_text("utf-8") if file.exists() else ""
            replace_atomically(file, f'project = "{project}"\n{rest}'.encode())
        except OSError as error:
            raise Misconfigured(str(file), f"cannot be written: {error.strerror}") from None
    remember_clone(options.settings().home, str(file.parent), project)
    interactive = sys.stdin.isatty() and not yes and not options.json
    result: dict[str, Any] = {"project": project, "file": str(file), "written": not existing}
    if not options.json:
        print_plain(f"{file}: project {project}{', as before' if existing else ''}")
    if _should_import_files(files, file.parent, interactive):
        from reverie.cli.agents.rules import remember_rule_files

        steps = remember_rule_files(file.parent, project, options.settings())
        refused = [step for step in steps if step.action == "rejected"]
        result["remembered"] = sum(step.action == "remembered" for step in steps)
        result["rejected"] = [f"{step.file}: {step.reason}" for step in refused]
        if not options.json:
            print_plain(f"stored {plural(result['remembered'], 'section')} of rule files")
            print_warnings(result["rejected"])
    options.print_result(result)
    if not agent and interactive:
        answer = click.prompt("Coding agent to set up (none: empty)", default="", err=True)
        agent = tuple(answer.replace(",", " ").split())
    for agent_name in agent:
        set_up_agent(options, agent_name, file.parent, project, yes=yes)
    if not agent and not options.json:
        err().print("Set up an agent with `reverie setup AGENT`.", style="dim")


def _check_name(name: str | None) -> None:
    # As for `git init .`: who gives a folder would get a project whose name nobody knows.
    if name is not None and ("/" in name or not any(map(str.isalnum, name))):
        raise InvalidInput("NAME", "is no name of a project; for another folder give --dir")


def _should_import_files(requested: bool | None, folder: Path, interactive: bool) -> bool:
    """Whether to import the project's rule files; on a terminal, ask if no flag was given."""
    from reverie.agent.rules.files import iter_rule_files

    names = [file.relative_to(folder).as_posix() for file in iter_rule_files(folder)]
    if not names or requested is not None:
        return bool(names and requested)
    if interactive:
        question = f"Store the sections of {', '.join(names)} as memories?"
        return confirm(question, default=True, abort=False)
    err().print(f"`reverie init --import-files` imports {', '.join(names)}.", style="dim")
    return False
