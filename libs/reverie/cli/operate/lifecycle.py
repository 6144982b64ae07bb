"""`reverie up`, `reverie down` and `reverie serve`: start and stop Reverie, run one service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.app.common import (
    NOT_RUNNING,
    OK,
    Home,
    Json,
    Sets,
    err,
    out,
    print_error,
    print_json,
    resolve_settings,
)
from reverie.cli.app.common import abbreviate_home as shown
from reverie.domain.core.errors import Conflict, Misconfigured

if TYPE_CHECKING:
    from reverie.runtime.settings.settings import Settings

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
TlsSource = Annotated[
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
    tls: TlsSource = None,
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
        "tls_source": tls,
    }
    settings = resolve_settings(home, sets, flags)
    if background:
        # Not as arguments, which every user of the machine may read.
        environment = {
            f"REVERIE_{name.upper()}": str(value)
            for name, value in flags.items()
            if value is not None
        }
        _start_in_background(settings, sets or (), environment, json)
        raise typer.Exit(OK)
    import asyncio

    from reverie.cli.operate.up_display import JsonUpDisplay, UpDisplay
    from reverie.embedded.supervisor import run_supervisor

    with JsonUpDisplay() if json else UpDisplay() as display:
        asyncio.run(run_supervisor(settings, None, display))
    raise typer.Exit(OK)


def _start_in_background(
    settings: Settings, sets: Sequence[str], environment: Mapping[str, str], json: bool
) -> None:
    """Starts it beside this process, and waits until it is up. Raises `Conflict`, `Unavailable`."""
    from reverie.cli.app.local_gateway import has_supervisor, start_in_background, wait_until_up

    if has_supervisor(settings):
        raise Conflict(f"Reverie is up on {settings.home}: see `reverie status`")
    note = wait_until_up(settings, start_in_background(settings, sets, environment))
    if json:
        print_json(note)
    else:
        out().print(f"Reverie is up on {note['gateway']}; `reverie down` stops it")


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
    from reverie.embedded.shutdown import stop_supervisor

    root = resolve_settings(home, sets).home
    process = stop_supervisor(root, timeout)
    if json:
        print_json({"ended": process, "home": str(root)})
    elif process is None:
        err().print(f"Reverie is not running on {shown(root)}", markup=False)
    else:
        message = f"Reverie on {shown(root)} is down (it was process {process})"
        out().print(message, markup=False)
    if process is None:
        raise typer.Exit(NOT_RUNNING)


class ServiceName(StrEnum):
    """The four services."""

    INGEST = "ingest"
    RECALL = "recall"
    DREAM = "dream"
    STALENESS = "staleness"


Name = Annotated[ServiceName, typer.Argument(help="Which service.", show_choices=True)]


def serve(name: Name, home: Home = None, sets: Sets = None) -> None:
    """Run one service on the Postgres and NATS that the settings name.

    It wants REVERIE_DATABASE_URL and REVERIE_NATS_URL, and ends on SIGTERM.

    Example: [bold]reverie serve recall --set recall_port=8080[/]

    Exit codes: 0 stopped when told to, 1 failed, 2 usage, 69 something it needs
    does not answer, 78 a setting is wrong.
    """
    from importlib import import_module

    from reverie.domain.redaction.redactor import redact
    from reverie.runtime.service import EXIT_CONFIG
    from reverie.runtime.service import serve as run

    try:
        settings = resolve_settings(home, sets)
    except Misconfigured as error:
        print_error(error)
        raise typer.Exit(EXIT_CONFIG) from None
    service = import_module(f"reverie_services.{name.value}.app")
    code = run(service.open_service, settings, name.value, lambda text: redact(text).text)
    raise typer.Exit(code)
