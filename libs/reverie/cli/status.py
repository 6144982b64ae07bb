"""`reverie status`: where everything is, and how it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    from reverie.cli.parts import Part


def status(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Addresses and health of every part.

    Example: [bold]reverie status --json[/]

    Exit codes: 0 all is ready, 1 something is not, 2 usage, 3 not running.
    """
    from reverie.cli.parts import look

    settings = settings_from(home, sets)
    view = look(settings)
    if json:
        print_json(_document(view.running, view.parts, settings.home, view.key_file))
    elif not view.running:
        err().print(f"Reverie is not running on {short_home(settings.home)}: start `reverie up`")
    else:
        _print(view.parts)
    if not view.running:
        raise typer.Exit(NOT_RUNNING)
    if not all(part.ok for part in view.parts):
        raise typer.Exit(FAILED)


def _document(running: bool, parts: list[Part], home: object, key_file: object) -> dict[str, Any]:
    from dataclasses import asdict

    gateway = next((p.address for p in parts if p.name == "recall"), None)
    return {
        "running": running,
        "ready": running and all(part.ok for part in parts),
        "gateway": gateway if running else None,
        "home": str(home),
        "key_file": str(key_file) if key_file else None,
        "parts": [asdict(part) for part in parts],
    }


def _print(parts: list[Part]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table.grid(padding=(0, 3))
    for part in parts:
        mark = "[green]ready[/]" if part.ok else "[red]not ready[/]"
        table.add_row(part.name, part.address, mark, escape(part.problem))
    out().print(table)
