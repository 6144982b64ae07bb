"""`reverie down`: ends what `reverie up`, or an agent's `reverie mcp`, started here."""

from __future__ import annotations

from typing import Annotated

import typer

from reverie.cli.common import NOT_RUNNING, Home, Json, Sets, err, out, print_json, settings_from
from reverie.cli.common import short_home as shown

Timeout = Annotated[
    float, typer.Option("--timeout", min=1, help="Seconds that everything has to end.")
]


def down(timeout: Timeout = 60.0, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Stop the Reverie that runs on the home folder, whoever started it.

    An agent's `reverie mcp` may have started it in the background. Nothing
    that was acknowledged is lost.

    Example: [bold]reverie down[/]

    Exit codes: 0 it is down, 1 it did not end in time, 2 usage, 3 it did not run.
    """
    from reverie.embedded.ending import end

    root = settings_from(home, sets).home
    process = end(root, timeout)
    if json:
        print_json({"ended": process, "home": str(root)})
    elif process is None:
        err().print(f"Reverie is not running on {shown(root)}", markup=False)
    else:
        told = f"Reverie on {shown(root)} is down (it was process {process})"
        out().print(told, markup=False)
    if process is None:
        raise typer.Exit(NOT_RUNNING)
