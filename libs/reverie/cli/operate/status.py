"""`reverie status`: addresses and health of every component, and graph numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.app.errors import FAILED, NOT_RUNNING
from reverie.cli.app.options import common_options, resolve_settings
from reverie.cli.app.output import abbreviate_home, err, out, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from reverie.cli.operate.component_status import ComponentStatus


@click.command("status")
@click.option("--watch", "-w", is_flag=True, help="Refresh until Ctrl-C.")
@common_options
def status(watch: bool, home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """Show the address and health of every component, and count memories.

    With REVERIE_GATEWAY_URL, it checks that gateway only. --watch shows the
    request rates of each service and the queues.

    Example: reverie status --json

    Exit codes: 0 all ready, 1 a component is not ready, 2 usage, 3 not running.
    """
    settings = resolve_settings(home, sets)
    if watch:
        from reverie.cli.operate.status_watch import watch_status

        watch_status(settings)
        return
    from reverie.cli.operate.component_status import check_components

    system = check_components(settings)
    graph = _fetch_graph_stats(home, sets) if system.running else None
    if json:
        document = _status_document(
            system.running, system.components, settings.home, system.key_file
        )
        print_json({**document, "graph": graph})
    elif not system.running:
        err().print(
            f"Reverie is not running on {abbreviate_home(settings.home)}: start `reverie up`"
        )
    else:
        out().print(_component_table(system.components))
        if graph:
            out().print(f"\n{_format_graph_stats(graph)}", markup=False)
    if not system.running:
        raise click.exceptions.Exit(NOT_RUNNING)
    if not all(component.ok for component in system.components):
        raise click.exceptions.Exit(FAILED)


def _fetch_graph_stats(home: Path | None, sets: Sequence[str]) -> dict[str, Any] | None:
    """The numbers of the graph; None if the gateway does not answer."""
    from reverie.cli.app.gateway_client import create_client
    from reverie.domain.core.errors import ReverieError

    try:
        return dict(create_client(home, sets).request("GET", "/v1/graph/stats"))
    except ReverieError:
        return None


def _format_graph_stats(graph: dict[str, Any]) -> str:
    details = f"{graph['edges']:,} edges, {graph['components']:,} components"
    return f"{graph['memories']:,} memories, {details} (see `reverie stats`)"


def _status_document(
    running: bool, components: list[ComponentStatus], home: object, key_file: object
) -> dict[str, Any]:
    from dataclasses import asdict

    gateway = next((p.address for p in components if p.name in {"recall", "gateway"}), None)
    return {
        "running": running,
        "ready": running and all(component.ok for component in components),
        "gateway": gateway if running else None,
        "home": str(home),
        "key_file": str(key_file) if key_file else None,
        "components": [asdict(component) for component in components],
    }


def _component_table(components: list[ComponentStatus]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table.grid(padding=(0, 3))
    for component in components:
        state = "[green]ready[/]" if component.ok else "[red]not ready[/]"
        table.add_row(component.name, component.address, state, escape(component.problem))
    return table
