"""`reverie up`: everything on this machine, until Ctrl-C."""

from __future__ import annotations

from typing import Annotated

import typer

from reverie.cli.common import OK, Home, Json, Sets, settings_from

Host = Annotated[
    str | None, typer.Option("--host", help="Address the services listen on (127.0.0.1).")
]
Port = Annotated[int | None, typer.Option("--port", help="Port of the gateway (3456; 0: any).")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option("--database-url", help="An external Postgres 15+ with pgvector 0.8+."),
]
NatsUrl = Annotated[
    str | None, typer.Option("--nats-url", help="An external NATS 2.10+ with JetStream.")
]


def up(
    home: Home = None,
    host: Host = None,
    port: Port = None,
    database_url: DatabaseUrl = None,
    nats_url: NatsUrl = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Start Postgres, NATS and the four services; Ctrl-C stops them.

    Example: [bold]reverie up --home /tmp/try --port 0[/]

    Exit codes: 0 stopped when told to, 1 a part did not come up or another
    `reverie up` holds the home folder, 2 usage.
    """
    import asyncio

    from reverie.cli.screen import JsonScreen, Screen
    from reverie.embedded.supervisor import run_up

    flags = {
        "host": host,
        "recall_port": port,
        "database_url": database_url,
        "nats_url": nats_url,
    }
    settings = settings_from(home, sets, flags)
    with JsonScreen() if json else Screen() as screen:
        asyncio.run(run_up(settings, None, screen))
    raise typer.Exit(OK)
