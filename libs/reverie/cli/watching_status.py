"""The live table of `reverie status --watch`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

    from reverie.cli.metering import Scrape
    from reverie.cli.parts import Part
    from reverie.runtime.settings import Settings

EVERY_SECONDS = 2.0


def keep_watching(settings: Settings) -> None:
    """Draws what goes on over and over, in its place on a terminal, till Ctrl-C."""
    from contextlib import suppress
    from time import sleep

    from rich.live import Live

    from reverie.cli.common import out
    from reverie.cli.metering import scrape_all
    from reverie.cli.parts import look

    before: dict[str, Scrape] = {}
    with suppress(KeyboardInterrupt), Live(console=out(), auto_refresh=False) as live:
        while True:
            view = look(settings)
            served = {p.name: p.address for p in view.parts if p.address.startswith("http")}
            now = scrape_all(served) if view.running else {}
            live.update(drawn(settings, view.running, view.parts, before, now), refresh=True)
            before = now
            sleep(EVERY_SECONDS)


def drawn(
    settings: Settings,
    running: bool,
    parts: list[Part],
    before: Mapping[str, Scrape],
    now: Mapping[str, Scrape],
) -> RenderableType:
    """What is shown of two looks."""
    from rich.console import Group

    from reverie.cli.common import short_home

    if not running:
        return f"Reverie is not running on {short_home(settings.home)}"
    drawn: Group = Group(_services(parts, before, now), "", _waiting(now))
    return drawn


def _services(parts: list[Part], before: Mapping[str, Scrape], now: Mapping[str, Scrape]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    from reverie.cli.metering import Scrape, flow

    table = Table("", "", box=None)
    for column in ("requests/s", "5xx/s", "95% within", "Postgres", "memory"):
        table.add_column(column, justify="right")
    table.add_column("")
    for part in parts:
        told = now.get(part.name, Scrape())
        went = flow(before.get(part.name, Scrape()), told)
        mark = "[green]ready[/]" if part.ok else "[red]not ready[/]"
        numbers = ("", "", "") if went is None else (
            f"{went.requests:.1f}",
            f"[red]{went.failed:.1f}[/]" if went.failed else "0",
            "" if went.p95 is None else f"{went.p95 * 1000:g} ms",
        )  # fmt: skip
        where = part.problem or part.address
        table.add_row(part.name, mark, *numbers, _pool(told), _memory(told), escape(where))
    return table


def _pool(told: Scrape) -> str:
    busy = sum(value for _, value in told.each("reverie_postgres_connections", state="busy"))
    limit = sum(value for _, value in told.each("reverie_postgres_connections_limit"))
    return f"{busy:.0f} of {limit:.0f}" if limit else ""


def _memory(told: Scrape) -> str:
    size = told.one("process_resident_memory_bytes")
    return "" if size is None else f"{size / 1e6:.0f} MB"


def _waiting(now: Mapping[str, Scrape]) -> Table:
    from rich.table import Table

    from reverie.cli.metering import waiting

    table = Table.grid(padding=(0, 3))
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    for text, count, age in waiting(now):
        since = "" if not age else f"the oldest for {age:.0f} s"
        loud = count > 0 and text in {"dead letters", "dreams given up"}
        table.add_row(text, f"[red]{count:,.0f}[/]" if loud else f"{count:,.0f}", since)
    return table
