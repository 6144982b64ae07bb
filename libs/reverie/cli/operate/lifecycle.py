"""`reverie up`, `reverie down` and `reverie serve`: start and stop Reverie, run one service."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.app.errors import NOT_RUNNING, OK, print_error
from reverie.cli.app.options import (
    CommonOptions,
    common_options,
    drop_unset,
    home_option,
    resolve_settings,
    set_option,
)
from reverie.cli.app.output import abbreviate_home, err, print_warnings
from reverie.domain.core.errors import Conflict, Misconfigured

if TYPE_CHECKING:
    from reverie.embedded.reporting import ProgressReporter
    from reverie.runtime.settings.settings import Settings

SUCCESSOR = "reverie.cli.operate.up_successor"


@click.command("up")
@click.option("--host", help="The address that the services listen on (default 127.0.0.1).")
@click.option(
    "--port",
    "recall_port",
    type=int,
    help="The port of the gateway (default 3456; 0 for any free port).",
)
@click.option("--database-url", help="An external Postgres 15+ with pgvector 0.8+.")
@click.option("--nats-url", help="An external NATS 2.10+ with JetStream.")
@click.option(
    "--tls", "tls_source", metavar="files|self-signed", help="The source of the TLS certificates."
)
@click.option(
    "--background",
    "-b",
    is_flag=True,
    help="Run in the background, and return once everything is up.",
)
@common_options
def up(options: CommonOptions, background: bool, **flags: Any) -> None:
    """Start Postgres, NATS and the four services, until Ctrl-C.

    The service recall is the gateway, the address for agents.

    With --background it returns once everything is up, and `reverie down` stops
    it; its output goes to logs/up.log.

    With --tls self-signed, all interfaces use TLS with a certificate authority
    of this home folder (tls/ca.pem). Commands, hooks and MCP trust it.

    Example: reverie up --home /tmp/try --port 0

    Exit codes: 0 stopped on request, 1 a component did not start, 2 usage,
    6 another `reverie up` uses the home folder.
    """
    settings = options.settings(flags)
    if background:
        _start_in_background(options, settings, drop_unset(flags))
        raise click.exceptions.Exit(OK)
    import asyncio

    from reverie.cli.operate.up_display import JsonUpDisplay, UpDisplay

    with JsonUpDisplay() if options.json else UpDisplay() as display:
        asyncio.run(_supervise(settings, display, options.json))
    raise click.exceptions.Exit(OK)


async def _supervise(settings: Settings, display: ProgressReporter, as_json: bool) -> None:
    """Starts everything, and becomes what watches it until it is stopped."""
    from dataclasses import asdict

    from reverie.cli.app.gateway_search import describe_search
    from reverie.embedded.supervision.supervisor import Successor, run_supervisor

    search = asdict(describe_search(settings)) if settings.watch_enabled else None
    caller = {"as_json": as_json, "search": search}
    await run_supervisor(settings, None, display, Successor(SUCCESSOR, caller))


def _start_in_background(
    options: CommonOptions, settings: Settings, flags: Mapping[str, object]
) -> None:
    """Starts Reverie in the background, and waits for it. Raises `Conflict` and `Unavailable`."""
    from reverie.cli.app.local_gateway import (
        UP_LOG,
        has_supervisor,
        start_in_background,
        wait_until_up,
    )
    from reverie.embedded.home import open_home
    from reverie.embedded.lock import describe_holder

    home = open_home(settings.home)
    if has_supervisor(settings):
        raise Conflict(describe_holder(home))
    log = home.logs / UP_LOG
    log_size = log.stat().st_size if log.exists() else 0
    # Other users of the machine can read arguments.
    environment = {f"REVERIE_{name.upper()}": str(value) for name, value in flags.items()}
    note = wait_until_up(settings, start_in_background(settings, options.sets, environment))
    # Notes are lines of text before the addresses, which are JSON.
    lines = log.read_bytes()[log_size:].decode(errors="replace").splitlines()
    print_warnings(list(takewhile(lambda line: not line.startswith("{"), lines)))
    options.print_result(note, f"Reverie runs at {note['gateway']}; `reverie down` stops it")


@click.command("down")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=60.0,
    help="Seconds to wait for the end.",
)
@common_options
def down(options: CommonOptions, timeout: float) -> None:
    """Stop the Reverie that uses the home folder.

    It also stops a Reverie that `reverie mcp` started in the background.
    Acknowledged writes are not lost.

    Example: reverie down

    Exit codes: 0 it stopped, 1 it did not stop in time, 2 usage, 3 it was not running.
    """
    from reverie.embedded.supervision.stop_request import stop_supervisor

    root = options.settings().home
    process = stop_supervisor(root, timeout)
    place = abbreviate_home(root)
    message = f"Reverie on {place} stopped (process {process})"
    if process is not None or options.json:
        options.print_result({"pid": process, "home": str(root)}, message)
    else:
        err().print(f"Reverie is not running on {place}", markup=False)
    if process is None:
        raise click.exceptions.Exit(NOT_RUNNING)


@click.command("serve")
@click.argument(
    "name",
    type=click.Choice(["ingest", "recall", "dream", "staleness", "engine", "all", "derive"]),
    help="The service, or one of the two processes of `reverie up`.",
)
@home_option
@set_option
def serve(name: str, home: Path | None, sets: tuple[str, ...]) -> None:
    """Run one service with the configured Postgres and NATS.

    It needs REVERIE_DATABASE_URL and REVERIE_NATS_URL, and stops on SIGTERM.

    `all` runs the four services in one process. `derive` runs the process
    beside it, with the models. `reverie up` starts these two.

    Example: reverie serve recall --set recall_port=8080

    Exit codes: 0 stopped on request, 1 failed, 2 usage, 69 a server that it needs
    does not answer, 78 a setting is wrong.
    """
    from importlib import import_module

    from reverie.domain.redaction.redactor import redact

    with _without_rich():
        from reverie.runtime.service import EXIT_CONFIG
        from reverie.runtime.service import serve as run

    try:
        settings = resolve_settings(home, sets)
        settings_for = _local_settings(name, settings)
    except Misconfigured as error:
        print_error(error)
        raise click.exceptions.Exit(EXIT_CONFIG) from None
    launches = import_module("reverie_services.launch").list_launches(name, settings_for)
    raise click.exceptions.Exit(run(launches, name, lambda text: redact(text).text))


@contextmanager
def _without_rich() -> Iterator[None]:
    """Hides rich from structlog, which imports it for coloured tracebacks that no service prints.

    It would take a fifth of the start of a service, and 3 MB.
    """
    if "rich" in sys.modules:
        yield
        return
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["rich"]


def _local_settings(name: str, settings: Settings) -> Callable[[str], Settings]:
    """The settings of each service; `all` and `derive` use the certificate of this machine."""
    if name in {"all", "derive"}:
        from reverie.embedded.home import open_home
        from reverie.embedded.tls.setup import prepare_tls

        tls = prepare_tls(settings, open_home(settings.home))
        if tls is not None:
            return lambda service: tls.settings_for(service, settings)
    return lambda _: settings
