"""All commands by name: where each is, and the line that the help has of it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

PANELS: dict[str, dict[str, tuple[str, str]]] = {
    "Memory": {
        "remember": ("remembering:remember", "Keep one fact. Without a kind, rules find it."),
        "recall": ("remembering:recall", "Find what is known."),
        "context": (
            "remembering:context",
            "What to know before starting: conventions, tasks, decisions, warnings.",
        ),
        "preflow": (
            "remembering:preflow",
            "What an agent is given before a turn: only what is new to its session.",
        ),
        "memories": ("remembering:memories", "List memories, newest first."),
        "show": ("memory:show", "One memory in full, with its neighbours."),
        "edit": (
            "editing:edit",
            "Change what is written of a memory; what it was stays in its history.",
        ),
        "forget": ("memory:forget", "Forget a memory: it is never found again."),
        "pin": ("memory:pin", "Always show a memory at session start; it never decays."),
        "restore": ("memory:restore", "Take a memory back out of the archive."),
        "confirm": ("memory:confirm", "Say that a doubtful memory holds as the code stands."),
        "history": (
            "memory:history",
            "Every version of a memory, newest first: what it was, by whom, why.",
        ),
        "rollback": (
            "memory:rollback",
            "Make a memory what an earlier version was, as a new version.",
        ),
        "provenance": (
            "memory:provenance",
            "Where a memory came from: session, turns, commit, what it replaced.",
        ),
        "feedback": (
            "memory:feedback",
            "Judge a memory: approve makes it certain, edit rewrites, discard forgets it.",
        ),
        "gc": ("collecting:gc", "Archive what decayed, and drop what nothing touches."),
    },
    "Around it": {
        "link": ("graph:link", "Connect two memories, so that one is found through the other."),
        "unlink": (
            "graph:unlink",
            "Remove an edge, by its id or by the two memories that it joins.",
        ),
        "subgraph": (
            "graph:subgraph",
            "What lies around a memory: why it came to be, what depends on it.",
        ),
        "impact": (
            "graph:impact",
            "Memories that a change of a file or an entity would make doubtful.",
        ),
        "stats": ("stats:stats", "The graph in numbers: memories, edges, components."),
        "stale": (
            "graph:stale",
            "Memories that may no longer be true, and the commits that say so.",
        ),
        "sessions": ("working:sessions", "Sessions, newest first; of one session what was said."),
        "session": ("telling:app", "Hand over a conversation: start, say, adjust, end."),
        "task": ("working:task", "Tasks: list, claim, give back, finish."),
        "skill": ("working:skill", "Procedures: list them, and fill one in to follow it."),
        "claim": ("claims:app", "Keep what was learned, with how sure it is and who says so."),
        "dream": ("dreams:app", "Digest conversations now, and see what dreams did."),
        "review": (
            "reviews:app",
            "Accept or refuse what a language model says of memories in doubt.",
        ),
        "git": ("git:app", "Tell what commits changed, so that memories know."),
        "trace": (
            "trace:trace",
            "Why a recall answered what it did: arms, hops, factors, what was cut.",
        ),
        "vault": ("vault:app", "Keep state and secrets beside memory."),
    },
    "Agents": {
        "init": (
            "init:init",
            "Make a folder a project: its reverie.toml, its agents, what its files tell them.",
        ),
        "setup": (
            "setup:setup",
            "Connect a coding agent: its tools (MCP), its hooks or instructions.",
        ),
        "agent-files": (
            "agent_files:app",
            "Hold CLAUDE.md, AGENTS.md and the like together with what is remembered.",
        ),
        "hook": ("hook:hook", "Answer a hook of a coding agent; `reverie setup` configures it."),
        "mcp": ("mcp:mcp", "Speak the Model Context Protocol on standard input and output."),
    },
    "Running it": {
        "up": ("up:up", "Start Postgres, NATS and the four services; Ctrl-C stops them."),
        "down": ("down:down", "Stop the Reverie that runs on the home folder, whoever started it."),
        "demo": (
            "demo:demo",
            "Start everything, play a sample day on it, and stay up until Ctrl-C.",
        ),
        "status": ("status:status", "Addresses and health of every part."),
        "watch": ("watching:watch", "Show changes of memory as they happen. End it with Ctrl-C."),
        "doctor": (
            "doctor:doctor",
            "Look at everything Reverie needs, and say what is wrong and how to mend it.",
        ),
        "serve": (
            "serve:serve",
            "Run one service on the Postgres and NATS that the settings name.",
        ),
        "key": ("keys:app", "Create, list, rotate, limit and revoke API keys."),
        "admin": ("admin:app", "Look after keys, projects, scopes and tenants."),
        "dead": ("dead:app", "List and replay dead letters."),
        "models": ("models:app", "List, fetch and check embedding models."),
        "migrate": (
            "migrate:migrate",
            "Bring the database schema up to date, and the streams where a NATS is set.",
        ),
        "reindex": (
            "reindex:reindex",
            "Rebuild what is derived: words and postings, chunks and vectors, anchors and touches.",
        ),
        "reembed": (
            "reembed:reembed",
            "Fill the vectors of the model that is set, then switch to it.",
        ),
        "export": ("carry:export", "Write all that the key may read to a file or a folder."),
        "completion": ("completing:completion", "Print what makes a shell complete the commands."),
        "import": ("importing:app", "Take in an export (`reverie import PATH`), or conversations."),
    },
}
"""By the panel of the help: a command's module and attribute, and what is said of it."""

WITH = {"hook": {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}}
"""What a command wants of its context."""

_ALL = {name: (panel, *told) for panel, names in PANELS.items() for name, told in names.items()}


class Commands(TyperGroup):
    """The commands; the module of one is imported when it runs, and none for the help."""

    _telling = False

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, panel by panel."""
        return [*self.commands, *(name for name in _ALL if name not in self.commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself; while help is shown, what stands for it."""
        if cmd_name not in _ALL:
            return self.commands.get(cmd_name)
        return stand_in(cmd_name) if self._telling else load(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, from the table: the parts that typer makes it with take as long as all else."""
        from reverie.cli.helping import print_help

        options = {"Options": [_option(one) for one in self.get_params(ctx)]}
        panels = {
            title: [(n, said) for n, (_, said) in one.items()] for title, one in PANELS.items()
        }
        usage = " ".join([ctx.command_path, *self.collect_usage_pieces(ctx)])
        print_help(usage, self.help or "", {**options, **panels}, self.epilog or "")

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """The names that begin so; no module is imported for them."""
        self._telling = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._telling = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named; of one that is none, those that are near."""
        if args and args[0] not in _ALL:
            self.commands = {**{name: stand_in(name) for name in _ALL}, **self.commands}
        return super().resolve_command(ctx, args)


def _option(one: Any) -> tuple[str, str]:
    return ", ".join(sorted(one.opts, key=len, reverse=True)), one.help or ""


def stand_in(name: str) -> TyperCommand:
    """A command of which only the help's line is known."""
    panel, _, said = _ALL[name]
    return TyperCommand(name, help=said, callback=None, rich_help_panel=panel)


def load(name: str) -> Any:
    """The command of this name, from its module."""
    module, _, attribute = _ALL[name][1].partition(":")
    found = getattr(import_module(f"reverie.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        made: Any = get_group(found)
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        alone.command(name, context_settings=WITH.get(name))(found)
        made = get_command(alone)
    made.name = name
    return made
