"""`reverie up`: everything on this machine, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.common import OK, Home, Json, Sets, out, print_json, settings_from
from reverie.domain.errors import Conflict

if TYPE_CHECKING:
    from reverie.runtime.settings import Settings

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
TlsFrom = Annotated[
    str | None,
    typer.Option("--tls", metavar="files|self-signed", help="Where certificates come from."),
]


Background = Annotated[
    bool,
    typer.Option("--background", "-b", help="Go on without this terminal; answer once it is up."),
]


def up(
    home: Home = None,
    host: Host = None,
    port: Port = None,
    database_url: DatabaseUrl = None,
    nats_url: NatsUrl = None,
    tls: TlsFrom = None,
    background: Background = False,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Start Postgres, NATS and the four services; Ctrl-C stops them.

    With --background it answers once all is up, and `reverie down` stops it;
    what it says goes to logs/up.log.

    With --tls self-signed all doors speak TLS by an authority of this home
    folder (tls/ca.pem), which commands, hooks and MCP of this home trust.

    Example: [bold]reverie up --home /tmp/try --port 0[/]

    Exit codes: 0 stopped when told to, 1 a part did not come up, 2 usage,
    6 another `reverie up` holds the home folder.
    """
    flags = {
        "host": host,
        "recall_port": port,
        "database_url": database_url,
        "nats_url": nats_url,
        "tls": tls,
    }
    settings = settings_from(home, sets, flags)
    if background:
        # Not as arguments, which every user of the machine may read.
        given = {f"REVERIE_{k.upper()}": str(v) for k, v in flags.items() if v is not None}
        _behind(settings, sets or (), given, json)
        raise typer.Exit(OK)
    import asyncio

    from reverie.cli.screen import JsonScreen, Screen
    from reverie.embedded.supervisor import run_up

    with JsonScreen() if json else Screen() as screen:
        asyncio.run(run_up(settings, None, screen))
    raise typer.Exit(OK)


def _behind(settings: Settings, sets: Sequence[str], given: Mapping[str, str], json: bool) -> None:
    """Starts it beside this process, and waits until it is up. Raises `Conflict`, `Unavailable`."""
    from reverie.cli.gateway import awaited, is_starting, start

    if is_starting(settings):
        raise Conflict(f"Reverie is up on {settings.home}: see `reverie status`")
    note = awaited(settings, start(settings, sets, given))
    if json:
        print_json(note)
    else:
        out().print(f"Reverie is up on {note['gateway']}; `reverie down` stops it")
