"""`reverie watch`: changes of memory as they happen."""

from __future__ import annotations

import json as jsonlib
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

import typer

from reverie.cli.asking import Desk, desk
from reverie.cli.common import Home, Json, Sets, err
from reverie.cli.options import Project
from reverie.cli.shown import show
from reverie.domain.errors import Unavailable

Scopes = Annotated[list[str] | None, typer.Option("--scope", help="Only here and below.")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", "-k", help="Only of this kind.")]
Events = Annotated[list[str] | None, typer.Option("--event", "-e", help="As remembered, edited.")]
Most = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="End after so many.")]

LONGEST_WAIT = 30.0


def watch(
    scope: Scopes = None,
    kind: Kinds = None,
    event: Events = None,
    project: Project = None,
    limit: Most = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Show changes of memory as they happen. End it with Ctrl-C.

    Where the connection breaks, it goes on from where it was.

    Example: [bold]reverie watch --event remembered[/]
    """
    at = desk(home, sets, project)
    scopes = scope or ([f"project/{at.project}"] if at.project else None)
    query = {"scope": scopes, "kind": kind, "event": event}
    with suppress(KeyboardInterrupt):
        for count, one in enumerate(_followed(at, query), start=1):
            typer.echo(jsonlib.dumps(one)) if json else show(_line(one))
            if count == limit:
                return


def _followed(at: Desk, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Events, over broken connections; raises `Unavailable` where the first fails."""
    after, wait, met = None, 0.5, False
    while True:
        try:
            for id, data in at.events("/v1/events", {**query, "after": after}):
                after, wait, met = id or after, 0.5, True
                if data is not None:
                    yield data
        except Unavailable as error:
            if not met:
                raise
            err().print(f"reverie: {error}; trying again in {wait:.0f} s", markup=False)
        time.sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT)


def _line(one: dict[str, Any]) -> str:
    id = str(one.get("id", "")).replace("-", "")[-8:]
    told = (one.get("event", ""), id, one.get("kind", ""), one.get("scope", ""))
    return "  ".join(str(part).ljust(10) for part in told).rstrip()
