"""`reverie watch`: prints memory events as they happen, and reconnects."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click

from reverie.cli.app.gateway_client import GatewayClient
from reverie.cli.app.options import CommonOptions, common_options, project_option
from reverie.cli.app.output import err, print_json, print_plain, short_id
from reverie.domain.core.errors import Unavailable

MAX_RETRY_WAIT = 30.0


@click.command("watch")
@click.option(
    "--scope", multiple=True, help="Only this scope and the scopes below it; may be repeated."
)
@click.option("--kind", "-k", multiple=True, help="Only this kind; may be repeated.")
@click.option(
    "--event",
    "-e",
    multiple=True,
    help="Only this event, such as remembered or edited; may be repeated.",
)
@project_option
@click.option("--limit", "-n", type=click.IntRange(min=1), help="Stop after this number of events.")
@common_options
def watch(
    options: CommonOptions,
    scope: tuple[str, ...],
    project: str | None,
    limit: int | None,
    **filters: Any,
) -> None:
    """Print changes of memories as they happen, until Ctrl-C.

    It reconnects if the connection breaks, and continues where it was.

    Example: reverie watch --event remembered
    """
    client = options.gateway(project)
    query = {**filters, "scope": scope or client.project_scope}
    with suppress(KeyboardInterrupt):
        for count, change in enumerate(_stream_changes(client, query), start=1):
            if options.json:
                print_json(change, indent=None)
            else:
                shown = change | {"id": short_id(change.get("id", ""))}
                fields = (str(shown.get(name, "")) for name in ("event", "id", "kind", "scope"))
                print_plain("  ".join(field.ljust(10) for field in fields).rstrip())
            if count == limit:
                return


def _stream_changes(client: GatewayClient, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Events across reconnects. Raises `Unavailable` if the first connection fails."""
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
            err().print(f"reverie: {error}; retrying in {delay:.0f} s", markup=False)
        time.sleep(delay)
        delay = min(delay * 2, MAX_RETRY_WAIT)
