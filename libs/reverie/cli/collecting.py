"""`reverie gc`: puts away what decayed and what nothing touches."""

from __future__ import annotations

from typing import Annotated

import typer

from reverie.cli.asking import desk
from reverie.cli.common import Home, Json, Sets
from reverie.cli.shown import tell

Now = Annotated[bool, typer.Option("--yes", "-y", help="Do it; without, say what would be done.")]


def gc(yes: Now = False, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Archive what decayed, and drop what nothing touches.

    A dry run by default. What is archived is found with --archived, and
    comes back by `reverie restore`.

    Example: [bold]reverie gc --yes[/]
    """
    query = {"only": ["archive", "collect"], "dry_run": not yes}
    done = desk(home, sets).ask("POST", "/v1/dream/tend", query)
    would = "" if yes else "would be: "
    left = "" if yes else " (--yes does it)"
    told = f"{done['archived']} archived, {done['collected']} files and entities dropped"
    tell(done, json, f"{would}{told}, of {done['looked']} looked at{left}")
