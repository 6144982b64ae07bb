"""`reverie status`: addresses and health of every component, and graph numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.app.common import (
    FAILED,
    NOT_RUNNING,
    Home,
    Json,
    Sets,
    abbreviate_home,
    err,
    out,
    print_json,
    resolve_settings,
)

if TYPE_CHECKING:
    from rich.table import Table

    from reverie.cli.operate.component_status import ComponentStatus


Watch = Annotated[bool, typer.Option("--watch", "-w", help="Look again and again, till Ctrl-C.")]


def status(watch: Watch = False, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Addresses and health of every part.

    And how much is remembered. Of a gateway elsewhere (REVERIE_GATEWAY_URL),
    whether it can work. --watch shows what goes through each service, and what
    waits.

    Example: [bold]reverie status --json[/]

    Exit codes: 0 all is ready, 1 something is not, 2 usage, 3 not running.
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
        raise typer.Exit(NOT_RUNNING)
    if not all(component.ok for component in system.components):
        raise typer.Exit(FAILED)


def _fetch_graph_stats(home: Path | None, sets: Sequence[str] | None) -> dict[str, Any] | None:
    """The graph in numbers; None where the gateway does not tell."""
    from reverie.cli.app.gateway_client import create_client
    from reverie.domain.core.errors import ReverieError

    try:
        return dict(create_client(home, sets).request("GET", "/v1/graph/stats"))
    except ReverieError:
        return None


def _format_graph_stats(graph: dict[str, Any]) -> str:
    details = f"{graph['edges']:,} edges, {graph['components']:,} components"
    return f"{graph['memories']:,} memories, {details} (`reverie stats` tells more)"


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
        "parts": [asdict(component) for component in components],
    }


def _component_table(components: list[ComponentStatus]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table.grid(padding=(0, 3))
    for component in components:
        state = "[green]ready[/]" if component.ok else "[red]not ready[/]"
        table.add_row(component.name, component.address, state, escape(component.problem))
    return table
