"""`reverie watch`: prints memory events as they happen, and reconnects."""

from __future__ import annotations

import json as jsonlib
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

import typer

from reverie.cli.app.common import Home, Json, Project, Sets, err
from reverie.cli.app.gateway_client import GatewayClient, create_client
from reverie.cli.app.output import print_plain
from reverie.domain.core.errors import Unavailable

Scopes = Annotated[list[str] | None, typer.Option("--scope", help="Only here and below.")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", "-k", help="Only of this kind.")]
Events = Annotated[list[str] | None, typer.Option("--event", "-e", help="As remembered, edited.")]
EventLimit = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="End after so many.")]

MAX_RETRY_WAIT = 30.0


def watch(
    scope: Scopes = None,
    kind: Kinds = None,
    event: Events = None,
    project: Project = None,
    limit: EventLimit = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Show changes of memory as they happen. End it with Ctrl-C.

    Where the connection breaks, it goes on from where it was.

    Example: [bold]reverie watch --event remembered[/]
    """
    client = create_client(home, sets, project)
    scopes = scope or ([f"project/{client.project}"] if client.project else None)
    query = {"scope": scopes, "kind": kind, "event": event}
    with suppress(KeyboardInterrupt):
        for count, change in enumerate(_stream_changes(client, query), start=1):
            typer.echo(jsonlib.dumps(change)) if json else print_plain(_format_change(change))
            if count == limit:
                return


def _stream_changes(client: GatewayClient, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Events, over broken connections; raises `Unavailable` where the first fails."""
    after, delay, connected = None, 0.5, False
    while True:
        try:
            for id, data in client.stream_events("/v1/events", {**query, "after": after}):
                after, delay, connected = id or after, 0.5, True
                if data is not None:
                    yield data
        except Unavailable as error:
            if not connected:
                raise
            err().print(f"reverie: {error}; trying again in {delay:.0f} s", markup=False)
        time.sleep(delay)
        delay = min(delay * 2, MAX_RETRY_WAIT)


def _format_change(change: dict[str, Any]) -> str:
    id = str(change.get("id", "")).replace("-", "")[-8:]
    fields = (change.get("event", ""), id, change.get("kind", ""), change.get("scope", ""))
    return "  ".join(str(field).ljust(10) for field in fields).rstrip()
