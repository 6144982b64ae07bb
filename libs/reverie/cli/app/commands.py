"""The table of all commands, the group that imports each one lazily, and `reverie completion`."""

from __future__ import annotations

from importlib import import_module

import click
from click.shell_completion import get_completion_class

SECTIONS: dict[str, dict[str, str]] = {
    "Memory": {
        "remember": "memory.remember_recall:remember",
        "recall": "memory.remember_recall:recall",
        "context": "memory.remember_recall:context",
        "preflow": "memory.remember_recall:preflow",
        "predict": "memory.predict:predict",
        "memories": "memory.remember_recall:list_memories",
        "show": "memory.manage:show",
        "edit": "memory.manage:edit",
        "archive": "memory.manage:archive",
        "forget": "memory.manage:forget",
        "restore": "memory.manage:restore",
        "erase": "memory.manage:erase",
        "pin": "memory.manage:pin",
        "unpin": "memory.manage:unpin",
        "confirm": "memory.manage:confirm_memory",
        "history": "memory.manage:history",
        "rollback": "memory.manage:rollback",
        "provenance": "memory.manage:provenance",
        "feedback": "memory.manage:feedback",
        "picture": "memory.pictures:app",
        "gc": "dreams.maintenance:gc",
    },
    "Graph and sessions": {
        "link": "memory.graph:link",
        "unlink": "memory.graph:unlink",
        "subgraph": "memory.graph:subgraph",
        "impact": "memory.graph:impact",
        "stats": "memory.graph:stats",
        "stale": "memory.graph:stale",
        "project": "memory.projects:app",
        "sessions": "memory.session:list_sessions",
        "session": "memory.session:app",
        "task": "memory.tasks:task",
        "skill": "memory.tasks:skill",
        "fact": "memory.tasks:fact",
        "dream": "dreams.dream:app",
        "maintenance": "dreams.maintenance:app",
        "review": "dreams.reviews:app",
        "git": "agents.git_announce:app",
        "trace": "memory.trace:trace",
        "vault": "memory.vault:app",
        "documents": "memory.documents:app",
    },
    "Agents": {
        "chat": "agents.chat:chat",
        "agents": "agents.engine_agents:app",
        "groups": "agents.engine_groups:app",
        "init": "agents.init:init",
        "setup": "agents.setup:setup",
        "rules": "agents.rules:app",
        "hook": "agents.setup:hook",
        "follow": "agents.follow:follow",
        "mcp": "agents.mcp:mcp",
    },
    "Operations": {
        "up": "operate.lifecycle:up",
        "down": "operate.lifecycle:down",
        "demo": "demo.command:demo",
        "console": "operate.console:console",
        "status": "operate.status:status",
        "watch": "memory.watch:watch",
        "doctor": "operate.doctor.command:doctor",
        "serve": "operate.lifecycle:serve",
        "key": "admin.keys:app",
        "admin": "admin.tenancy:app",
        "dead-letters": "operate.dead_letters:app",
        "models": "operate.models:app",
        "migrate": "operate.migrate:migrate",
        "reindex": "operate.reindex:reindex",
        "reembed": "operate.reindex:reembed",
        "mirror": "memory.mirror:mirror",
        "export": "memory.export_import:export",
        "import": "memory.import_group:app",
        "completion": "app.commands:completion",
    },
}
"""By section of the help: each command's module and attribute. Its docstring is its help."""

COMMANDS = {name: target for section in SECTIONS.values() for name, target in section.items()}


class LazyGroup(click.Group):
    """The root group; it imports a command's module when that command is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, from its module."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(f"reverie.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises `NoSuchCommand` with similar names as suggestions."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.exceptions.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands by section, with the first sentence of each one's help."""

        for title, names in SECTIONS.items():
            commands = ((name, self.get_command(ctx, name)) for name in names)
            rows = [
                (name, command.get_short_help_str(200)) for name, command in commands if command
            ]
            with formatter.section(title):
                formatter.write_dl(rows, col_max=max(map(len, COMMANDS)))


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), help="The shell.")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in a shell.

    Example: reverie completion bash >> ~/.bashrc
    """
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    root = context.find_root().command
    click.echo(completion_class(root, {}, "reverie", "_REVERIE_COMPLETE").source())
