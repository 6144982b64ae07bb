"""The `reverie` command. What a command needs is imported when it runs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import typer

from reverie.cli import (
    admin,
    carry,
    dead,
    demo,
    doctor,
    dreams,
    git,
    graph,
    hook,
    importing,
    keys,
    mcp,
    memory,
    migrate,
    models,
    reembed,
    reindex,
    remembering,
    serve,
    setup,
    status,
    trace,
    up,
    vault,
    webhooks,
    working,
)
from reverie.cli.common import CODES, FAILED, exit_code, say
from reverie.domain.errors import ReverieError

app = typer.Typer(
    name="reverie",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Long-term memory for coding agents.\n\nExample: [bold]reverie up[/]",
    epilog=CODES,
)

app.command("up")(up.up)
app.command("demo")(demo.demo)
for command in (
    remembering.remember,
    remembering.recall,
    remembering.context,
    remembering.memories,
    memory.show,
    memory.forget,
    memory.pin,
    memory.restore,
    memory.confirm,
    memory.history,
    memory.rollback,
    memory.provenance,
    memory.feedback,
    graph.link,
    graph.unlink,
    graph.subgraph,
    graph.impact,
    graph.stale,
    working.sessions,
    remembering.preflow,
):
    app.command(command.__name__)(command)
app.add_typer(working.task, name="task")
app.add_typer(working.skill, name="skill")
app.command("status")(status.status)
app.command("doctor")(doctor.doctor)
app.add_typer(keys.app, name="key")
admin.app.add_typer(webhooks.app, name="webhooks")
app.add_typer(admin.app, name="admin")
app.add_typer(dead.app, name="dead")
app.add_typer(git.app, name="git")
app.add_typer(dreams.app, name="dream")
app.add_typer(models.app, name="models")
app.command("export")(carry.export)
app.add_typer(importing.app, name="import")
app.command("trace")(trace.trace)
app.command("mcp")(mcp.mcp)
app.command("hook", context_settings=hook.REST)(hook.hook)
app.command("setup")(setup.setup)
app.add_typer(vault.app, name="vault")
app.command("migrate")(migrate.migrate)
app.command("reindex")(reindex.reindex)
app.command("reembed")(reembed.reembed)
app.command("serve")(serve.serve)


@dataclass
class Unexpected(ReverieError):
    """{kind}: {reason} (this should not happen; REVERIE_LOG_LEVEL=debug shows where)"""

    kind: str
    reason: str


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"reverie {version('reverie')}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True),
) -> None:
    """Long-term memory for coding agents."""


def main() -> None:
    """Run the command line; an error of ours is one line on standard error."""
    try:
        app()
    except ReverieError as error:
        say(error, "--json" in sys.argv)
        sys.exit(exit_code(error))
    except Exception as error:
        if os.environ.get("REVERIE_LOG_LEVEL", "").lower() == "debug":
            raise
        say(Unexpected(type(error).__name__, (str(error).splitlines() or [""])[0]))
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
