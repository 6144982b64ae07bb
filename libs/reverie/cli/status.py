"""`reverie status`: where everything is, and how it is."""

from __future__ import annotations

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
    from reverie.runtime.settings import Settings


Watch = Annotated[bool, typer.Option("--watch", "-w", help="Look again and again, till Ctrl-C.")]
EVERY_SECONDS = 2.0


def status(watch: Watch = False, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Addresses and health of every part.

    Example: [bold]reverie status --json[/]

    Exit codes: 0 all is ready, 1 something is not, 2 usage, 3 not running.
    """
    settings = settings_from(home, sets)
    if watch:
        _watch(settings)
        return
    from reverie.cli.parts import look

    view = look(settings)
    if json:
        print_json(_document(view.running, view.parts, settings.home, view.key_file))
    elif not view.running:
        err().print(f"Reverie is not running on {short_home(settings.home)}: start `reverie up`")
    else:
        out().print(_table(view.parts))
    if not view.running:
        raise typer.Exit(NOT_RUNNING)
    if not all(part.ok for part in view.parts):
        raise typer.Exit(FAILED)


def _watch(settings: Settings) -> None:
    """The same table over and over, in its place on a terminal."""
    from contextlib import suppress
    from time import sleep

    from rich.live import Live

    from reverie.cli.parts import look

    with suppress(KeyboardInterrupt), Live(console=out(), auto_refresh=False) as live:
        while True:
            view = look(settings)
            away = f"Reverie is not running on {short_home(settings.home)}"
            live.update(_table(view.parts) if view.running else away, refresh=True)
            sleep(EVERY_SECONDS)


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


def _table(parts: list[Part]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table.grid(padding=(0, 3))
    for part in parts:
        mark = "[green]ready[/]" if part.ok else "[red]not ready[/]"
        table.add_row(part.name, part.address, mark, escape(part.problem))
    return table
