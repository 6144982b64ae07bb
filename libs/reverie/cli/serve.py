"""`reverie serve NAME`: one service in this process."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from reverie.cli.common import Home, Sets, say, settings_from
from reverie.domain.errors import Misconfigured


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

    from reverie.domain.redaction import redact
    from reverie.runtime.service import EXIT_CONFIG
    from reverie.runtime.service import serve as run

    try:
        settings = settings_from(home, sets)
    except Misconfigured as error:
        say(error)
        raise typer.Exit(EXIT_CONFIG) from None
    service = import_module(f"reverie.{name.value}.app")
    code = run(service.open_service, settings, name.value, lambda text: redact(text).text)
    raise typer.Exit(code)
