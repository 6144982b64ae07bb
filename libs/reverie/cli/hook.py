"""`reverie hook`, as the list of commands shows it; `reverie.cli.start` runs it without this."""

from __future__ import annotations

import typer


def hook(context: typer.Context) -> None:
    """Answer a hook of a coding agent; `reverie setup` configures it.

    Example: [bold]reverie hook SessionStart --project shop < event.json[/]
    """
    from reverie.agent.hook import main

    raise typer.Exit(main(context.args))
