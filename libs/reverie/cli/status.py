"""`reverie status`: where everything is, and how it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.common import (
    FAILED,
    NOT_RUNNING,
    Home,
    Json,
    Sets,
    err,
    out,
    print_json,
    settings_from,
    short_home,
)

if TYPE_CHECKING:
    from rich.table import Table

    from reverie.cli.parts import Part


Watch = Annotated[bool, typer.Option("--watch", "-w", help="Look again and again, till Ctrl-C.")]


def status(watch: Watch = False, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Addresses and health of every part.

    And how much is remembered. Of a gateway elsewhere (REVERIE_GATEWAY_URL),
    whether it can work. --watch shows what goes through each service, and what
    waits.

    Example: [bold]reverie status --json[/]

    Exit codes: 0 all is ready, 1 something is not, 2 usage, 3 not running.
    """
    settings = settings_from(home, sets)
    if watch:
        from reverie.cli.watching_status import keep_watching

        keep_watching(settings)
        return
    from reverie.cli.parts import look

    view = look(settings)
    graph = _graph(home, sets) if view.running else None
    if json:
        told = _document(view.running, view.parts, settings.home, view.key_file)
        print_json({**told, "graph": graph})
    elif not view.running:
        err().print(f"Reverie is not running on {short_home(settings.home)}: start `reverie up`")
    else:
        out().print(_table(view.parts))
        if graph:
            out().print(f"\n{_numbers(graph)}", markup=False)
    if not view.running:
        raise typer.Exit(NOT_RUNNING)
    if not all(part.ok for part in view.parts):
        raise typer.Exit(FAILED)


def _graph(home: Path | None, sets: Sequence[str] | None) -> dict[str, Any] | None:
    """The graph in numbers; None where the gateway does not tell."""
    from reverie.cli.asking import desk
    from reverie.domain.errors import ReverieError

    try:
        return dict(desk(home, sets).ask("GET", "/v1/graph/stats"))
    except ReverieError:
        return None


def _numbers(graph: dict[str, Any]) -> str:
    parts = f"{graph['edges']:,} edges, {graph['components']:,} components"
    return f"{graph['memories']:,} memories, {parts} (`reverie stats` tells more)"


def _document(running: bool, parts: list[Part], home: object, key_file: object) -> dict[str, Any]:
    from dataclasses import asdict

    gateway = next((p.address for p in parts if p.name in {"recall", "gateway"}), None)
    return {
        "running": running,
        "ready": running and all(part.ok for part in parts),
        "gateway": gateway if running else None,
        "home": str(home),
        "key_file": str(key_file) if key_file else None,
        "parts": [asdict(part) for part in parts],
    }


def _table(parts: list[Part]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table.grid(padding=(0, 3))
    for part in parts:
        mark = "[green]ready[/]" if part.ok else "[red]not ready[/]"
        table.add_row(part.name, part.address, mark, escape(part.problem))
    return table
