"""`reverie setup` connects a coding agent; `reverie hook` answers its hooks."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from reverie.cli.app.errors import FAILED
from reverie.cli.app.options import CommonOptions, common_options, folder_option, yes_option
from reverie.cli.app.output import abbreviate_home, confirm, out, print_plain, print_warnings
from reverie.domain.core.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from reverie.agent.setup.agents import SetupTarget
    from reverie.agent.setup.changes import UndoPlan
    from reverie.cli.agents.agent_key import AgentKeyReport

LOCK_TIMEOUT_SECONDS: Final = 60.0


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
@click.option("--undo", is_flag=True, help="Undo an earlier setup, and revoke the agent's key.")
@click.option("--new-key", is_flag=True, help="Replace the agent's key; the old one ends at once.")
@yes_option
@common_options
def setup(options: CommonOptions, agent: str | None, folder: Path, **choices: Any) -> None:
    """Connect a coding agent: MCP tools, hooks or instructions.

    On a Reverie of this machine, the agent gets a key of its own: a writer, for
    the project or, with --user, for all. It is kept in the home folder.

    It shows the changes of each file and asks before it writes. --undo restores
    the earlier files, and names those that were edited since: they stay.

    Example: reverie setup claude-code

    Exit codes: 1 if --undo left an edited file; for the others see `reverie --help`.
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
    new_key: bool = False,
) -> None:
    """Shows the changes that set up an agent, asks, and writes them."""
    from reverie.agent.git.project_detection import detect_project
    from reverie.agent.setup.agents import SetupTarget
    from reverie.agent.setup.changes import (
        UndoPlan,
        apply_setup,
        apply_undo,
        plan_setup,
        plan_undo,
        require_supported_agent,
    )

    if not folder.is_dir():
        raise InvalidInput("--dir", f"{folder} is not a folder")
    require_supported_agent(agent)
    repository = detect_project(str(folder.resolve()), project, {})
    root = Path(repository.root)
    target = SetupTarget(Path.home(), root, repository.project, user, _reverie_command())
    backup_folder = options.settings().home / "setup"
    plan = (
        plan_undo(agent, target, backup_folder)
        if undo
        else UndoPlan(plan_setup(agent, target), edited=[])
    )
    changes = plan.changes
    if not options.json:
        _print_changes(plan, undo)
    if changes and not yes and not options.json:
        confirm("Write these changes?")
    key = None
    if not options.json or yes:
        with _lock_setups(backup_folder.parent):
            (apply_undo if undo else apply_setup)(agent, target, changes, backup_folder)
            key = _update_key(options, agent, target, plan, undo, new_key)
            _remember_clone(backup_folder.parent, agent, target, undo)
    documents = [{"path": str(change.path), "diff": change.diff} for change in changes]
    edited = [str(path) for path in plan.edited]
    result = {"agent": agent, "written": yes, "changes": documents, "edited": edited}
    result["key"] = asdict(key) if key else None
    lines = [key.text] if key else []
    options.print_result(result, *lines, *(_next_steps(agent, undo) if changes else []))
    if edited:
        raise click.exceptions.Exit(FAILED)


@contextmanager
def _lock_setups(home: Path) -> Iterator[None]:
    """One setup writes at a time, so that two neither lose an edit nor create a key each."""
    from filelock import FileLock, Timeout

    home.mkdir(mode=0o711, parents=True, exist_ok=True)
    try:
        with FileLock(home / "setup.lock", timeout=LOCK_TIMEOUT_SECONDS, mode=0o600):
            yield
    except Timeout:
        raise Conflict("another `reverie setup` writes now: try again") from None


def _remember_clone(home: Path, agent: str, target: SetupTarget, undo: bool) -> None:
    """Adds the clone to those that are watched; an agent that is undone is no longer followed."""
    from reverie.agent.watch.known_clones import ALL_CLONES, forget_agent, remember_clone

    root = ALL_CLONES if target.is_user_wide else str(target.folder)
    if undo:
        forget_agent(home, root, agent)
    else:
        remember_clone(home, root, "" if target.is_user_wide else target.project or "", agent)


def _update_key(
    options: CommonOptions, agent: str, target: SetupTarget, plan: UndoPlan, undo: bool, renew: bool
) -> AgentKeyReport | None:
    """Creates or revokes the agent's key. An agent that is still set up keeps it."""
    from reverie.agent.setup.agents import AGENTS_OF_ALL_PROJECTS, AGENTS_WITHOUT_KEY
    from reverie.cli.agents.agent_key import AgentKeyManager

    if agent in AGENTS_WITHOUT_KEY or plan.edited:
        return None
    is_for_all = target.is_user_wide or agent in AGENTS_OF_ALL_PROJECTS
    keeper = AgentKeyManager(options, agent, "" if is_for_all else target.project or "")
    return keeper.revoke() if undo else keeper.ensure(renew)


def _next_steps(agent: str, undo: bool) -> list[str]:
    """What to do after the changes were written."""
    from reverie.agent.coding_agents import find_coding_agent
    from reverie.agent.setup.codex_trust import HOW_TO_TRUST

    if undo:
        return [f"Undone. Restart {agent}. Memories stay: `reverie memories` lists them."]
    lines = [
        f"Written. Restart {agent}, then ask it: What do you remember about this project?",
        f"`reverie doctor` checks the rest; `reverie setup {agent} --undo` takes this back.",
    ]
    if agent == "codex":
        lines.append(
            f"Codex runs no hook that you have not trusted: {HOW_TO_TRUST}. `codex exec` does "
            "not ask."
        )
    if find_coding_agent(agent).follows:
        lines.append(
            f"{agent} has no hooks: its conversations are followed while `reverie up` or "
            "`reverie mcp` runs."
        )
    executable = _own_executable()
    if executable is not None and not _is_on_path():
        lines.append(
            "Agents start `reverie` by its name, which is not on the PATH outside of this virtual "
            "environment. Put it on the PATH, for example: "
            f"mkdir -p ~/.local/bin && ln -s {shlex.quote(str(executable))} ~/.local/bin/reverie"
        )
    return lines


def _reverie_command() -> str:
    """The command that starts Reverie: its name if it is on the path."""
    executable = _own_executable()
    return str(executable) if executable is not None and not _is_on_path() else "reverie"


def _own_executable() -> Path | None:
    executable = Path(sys.executable).with_name("reverie")
    return executable if executable.exists() else None


def _is_on_path() -> bool:
    """Whether agents find `reverie`. They may start without the virtual environment of this
    process, which a shell has on its PATH because it is active, or because it was put there."""
    own = Path(sys.executable).parent if sys.prefix != sys.base_prefix else None
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if Path(folder) != own)
    return shutil.which("reverie", path=path) is not None


def _print_changes(plan: UndoPlan, undo: bool) -> None:
    if not plan.changes and not plan.edited:
        print_plain("There is no setup to undo." if undo else "It is set up already.")
    print_warnings(
        [
            f"{abbreviate_home(path)} was edited since `reverie setup` and stays as it is: remove "
            "the parts that name reverie by hand"
            for path in plan.edited
        ]
    )
    for change in plan.changes:
        suffix = "" if change.diff else " nothing to change"
        out().print(f"{abbreviate_home(change.path)}:{suffix}", markup=False, style="bold")
        for line in change.diff.splitlines()[2:]:
            style = {"+": "green", "-": "red"}.get(line[:1])
            out().print(line, markup=False, style=style)
