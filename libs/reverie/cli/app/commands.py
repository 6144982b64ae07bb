"""The table of all commands, the group that imports each lazily, and `reverie completion`."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group


class Shell(StrEnum):
    """Shells that can be made to complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print what makes a shell complete the commands.

    Example: [bold]reverie completion bash >> ~/.bashrc[/]
    """
    from typer._completion_shared import get_completion_script

    typer.echo(
        get_completion_script(
            prog_name="reverie", complete_var="_REVERIE_COMPLETE", shell=shell.value
        )
    )


PANELS: dict[str, dict[str, tuple[str, str]]] = {
    "Memory": {
        "remember": (
            "memory.remember_recall:remember",
            "Keep one fact. Without a kind, rules find it.",
        ),
        "recall": ("memory.remember_recall:recall", "Find what is known."),
        "context": (
            "memory.remember_recall:context",
            "What to know before starting: conventions, tasks, decisions, warnings.",
        ),
        "preflow": (
            "memory.remember_recall:preflow",
            "What an agent is given before a turn: only what is new to its session.",
        ),
        "memories": ("memory.remember_recall:list_memories", "List memories, newest first."),
        "show": ("memory.manage:show", "One memory in full, with its neighbours."),
        "edit": (
            "memory.manage:edit",
            "Change what is written of a memory; what it was stays in its history.",
        ),
        "forget": ("memory.manage:forget", "Forget a memory: it is never found again."),
        "pin": ("memory.manage:pin", "Always show a memory at session start; it never decays."),
        "restore": ("memory.manage:restore", "Take a memory back out of the archive."),
        "confirm": (
            "memory.manage:confirm",
            "Say that a doubtful memory holds as the code stands.",
        ),
        "history": (
            "memory.manage:history",
            "Every version of a memory, newest first: what it was, by whom, why.",
        ),
        "rollback": (
            "memory.manage:rollback",
            "Make a memory what an earlier version was, as a new version.",
        ),
        "provenance": (
            "memory.manage:provenance",
            "Where a memory came from: session, turns, commit, what it replaced.",
        ),
        "feedback": (
            "memory.manage:feedback",
            "Judge a memory: approve makes it certain, edit rewrites, discard forgets it.",
        ),
        "gc": ("memory.manage:gc", "Archive what decayed, and drop what nothing touches."),
    },
    "Around it": {
        "link": (
            "memory.graph:link",
            "Connect two memories, so that one is found through the other.",
        ),
        "unlink": (
            "memory.graph:unlink",
            "Remove an edge, by its id or by the two memories that it joins.",
        ),
        "subgraph": (
            "memory.graph:subgraph",
            "What lies around a memory: why it came to be, what depends on it.",
        ),
        "impact": (
            "memory.graph:impact",
            "Memories that a change of a file or an entity would make doubtful.",
        ),
        "stats": ("memory.graph:stats", "The graph in numbers: memories, edges, components."),
        "stale": (
            "memory.graph:stale",
            "Memories that may no longer be true, and the commits that say so.",
        ),
        "sessions": (
            "memory.tasks:list_sessions",
            "Sessions, newest first; of one session what was said.",
        ),
        "session": ("memory.session:app", "Hand over a conversation: start, say, adjust, end."),
        "task": ("memory.tasks:task", "Tasks: list, claim, give back, finish."),
        "skill": ("memory.tasks:skill", "Procedures: list them, and fill one in to follow it."),
        "claim": (
            "memory.facts:app",
            "Keep what was learned, with how sure it is and who says so.",
        ),
        "dream": ("dreams.dream:app", "Digest conversations now, and see what dreams did."),
        "review": (
            "dreams.reviews:app",
            "Accept or refuse what a language model says of memories in doubt.",
        ),
        "git": ("agents.git_announce:app", "Tell what commits changed, so that memories know."),
        "trace": (
            "memory.trace:trace",
            "Why a recall answered what it did: arms, hops, factors, what was cut.",
        ),
        "vault": ("memory.vault:app", "Keep state and secrets beside memory."),
    },
    "Agents": {
        "init": (
            "agents.init:init",
            "Make a folder a project: its reverie.toml, its agents, what its files tell them.",
        ),
        "setup": (
            "agents.setup:setup",
            "Connect a coding agent: its tools (MCP), its hooks or instructions.",
        ),
        "agent-files": (
            "agents.rules:app",
            "Hold CLAUDE.md, AGENTS.md and the like together with what is remembered.",
        ),
        "hook": (
            "agents.setup:hook",
            "Answer a hook of a coding agent; `reverie setup` configures it.",
        ),
        "mcp": ("agents.mcp:mcp", "Speak the Model Context Protocol on standard input and output."),
    },
    "Running it": {
        "up": (
            "operate.lifecycle:up",
            "Start Postgres, NATS and the four services; Ctrl-C stops them.",
        ),
        "down": (
            "operate.lifecycle:down",
            "Stop the Reverie that runs on the home folder, whoever started it.",
        ),
        "demo": (
            "demo.command:demo",
            "Start everything, play a sample day on it, and stay up until Ctrl-C.",
        ),
        "status": ("operate.status:status", "Addresses and health of every part."),
        "watch": (
            "memory.watch:watch",
            "Show changes of memory as they happen. End it with Ctrl-C.",
        ),
        "doctor": (
            "operate.doctor.command:doctor",
            "Look at everything Reverie needs, and say what is wrong and how to mend it.",
        ),
        "serve": (
            "operate.lifecycle:serve",
            "Run one service on the Postgres and NATS that the settings name.",
        ),
        "key": ("admin.keys:app", "Create, list, rotate, limit and revoke API keys."),
        "admin": ("admin.tenancy:app", "Look after keys, projects, scopes and tenants."),
        "dead": ("operate.dead_letters:app", "List and replay dead letters."),
        "models": ("operate.models:app", "List, fetch and check embedding models."),
        "migrate": (
            "operate.migrate:migrate",
            "Bring the database schema up to date, and the streams where a NATS is set.",
        ),
        "reindex": (
            "operate.reindex:reindex",
            "Rebuild what is derived: words and postings, chunks and vectors, anchors and touches.",
        ),
        "reembed": (
            "operate.reembed:reembed",
            "Fill the vectors of the model that is set, then switch to it.",
        ),
        "export": (
            "memory.export_import:export",
            "Write all that the key may read to a file or a folder.",
        ),
        "completion": (
            "app.commands:completion",
            "Print what makes a shell complete the commands.",
        ),
        "import": (
            "memory.import_group:app",
            "Take in an export (`reverie import PATH`), or conversations.",
        ),
    },
}
"""By the panel of the help: a command's module and attribute, and what is said of it."""

CONTEXT_SETTINGS = {
    "hook": {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
}
"""What a command wants of its context."""

_COMMANDS = {
    name: (panel, *told) for panel, names in PANELS.items() for name, told in names.items()
}


class LazyCommandGroup(TyperGroup):
    """The commands; the module of one is imported when it runs, and none for the help."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, panel by panel."""
        return [*self.commands, *(name for name in _COMMANDS if name not in self.commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself; while help is shown, what stands for it."""
        if cmd_name not in _COMMANDS:
            return self.commands.get(cmd_name)
        return placeholder_command(cmd_name) if self._listing else load_command(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, from the table: the parts that typer makes it with take as long as all else."""
        from reverie.cli.app.root_help import print_help

        options = {"Options": [_describe_option(item) for item in self.get_params(ctx)]}
        panels = {
            title: [(n, summary) for n, (_, summary) in item.items()]
            for title, item in PANELS.items()
        }
        usage = " ".join([ctx.command_path, *self.collect_usage_pieces(ctx)])
        print_help(usage, self.help or "", {**options, **panels}, self.epilog or "")

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """The names that begin so; no module is imported for them."""
        self._listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._listing = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named; of one that is none, those that are near."""
        if args and args[0] not in _COMMANDS:
            self.commands = {
                **{name: placeholder_command(name) for name in _COMMANDS},
                **self.commands,
            }
        return super().resolve_command(ctx, args)


def _describe_option(parameter: Any) -> tuple[str, str]:
    return ", ".join(sorted(parameter.opts, key=len, reverse=True)), parameter.help or ""


def placeholder_command(name: str) -> TyperCommand:
    """A command of which only the help's line is known."""
    panel, _, summary = _COMMANDS[name]
    return TyperCommand(name, help=summary, callback=None, rich_help_panel=panel)


def load_command(name: str) -> Any:
    """The command of this name, from its module."""
    module, _, attribute = _COMMANDS[name][1].partition(":")
    target = getattr(import_module(f"reverie.cli.{module}"), attribute)
    if isinstance(target, typer.Typer):
        command: Any = get_group(target)
    else:
        single_command_app = typer.Typer(add_completion=False, rich_markup_mode="rich")
        single_command_app.command(name, context_settings=CONTEXT_SETTINGS.get(name))(target)
        command = get_command(single_command_app)
    command.name = name
    return command
