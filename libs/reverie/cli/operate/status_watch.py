"""The live table of `reverie status --watch`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

    from reverie.cli.operate.component_status import ComponentStatus
    from reverie.cli.operate.service_metrics import MetricsSnapshot
    from reverie.runtime.settings.settings import Settings

REFRESH_INTERVAL = 2.0


def watch_status(settings: Settings) -> None:
    """Shows the status, refreshed in place on a terminal, until Ctrl-C."""
    from contextlib import suppress
    from time import sleep

    from rich.live import Live

    from reverie.cli.app.output import out
    from reverie.cli.operate.component_status import check_components, http_urls
    from reverie.cli.operate.service_metrics import scrape_all

    previous: dict[str, MetricsSnapshot] = {}
    with suppress(KeyboardInterrupt), Live(console=out(), auto_refresh=False) as live:
        while True:
            system = check_components(settings)
            current = scrape_all(http_urls(system)) if system.running else {}
            live.update(
                render_status(settings, system.running, system.components, previous, current),
                refresh=True,
            )
            previous = current
            sleep(REFRESH_INTERVAL)


def render_status(
    settings: Settings,
    running: bool,
    components: list[ComponentStatus],
    previous: Mapping[str, MetricsSnapshot],
    current: Mapping[str, MetricsSnapshot],
) -> RenderableType:
    """The tables for two scrapes of the services."""
    from rich.console import Group

    from reverie.cli.app.output import abbreviate_home

    if not running:
        return f"Reverie is not running on {abbreviate_home(settings.home)}"
    group: Group = Group(_service_table(components, previous, current), "", _waiting_table(current))
    return group


def _service_table(
    components: list[ComponentStatus],
    previous: Mapping[str, MetricsSnapshot],
    current: Mapping[str, MetricsSnapshot],
) -> Table:
    from rich.markup import escape
    from rich.table import Table

    from reverie.cli.operate.service_metrics import MetricsSnapshot, compute_rates

    table = Table("", "", box=None)
    for column in ("requests/s", "5xx/s", "95th percentile", "Postgres", "memory"):
        table.add_column(column, justify="right")
    table.add_column("")
    for component in components:
        snapshot = current.get(component.name, MetricsSnapshot())
        rates = compute_rates(previous.get(component.name, MetricsSnapshot()), snapshot)
        state = "[green]ready[/]" if component.ok else "[red]not ready[/]"
        numbers = ["", "", ""] if rates is None else [
            f"{rates.requests:.1f}",
            f"[red]{rates.failed:.1f}[/]" if rates.failed else "0",
            "" if rates.p95 is None else f"{rates.p95 * 1000:g} ms",
        ]  # fmt: skip
        busy = snapshot.iter_series("reverie_postgres_connections", state="busy")
        limit = sum(n for _, n in snapshot.iter_series("reverie_postgres_connections_limit"))
        size = snapshot.max_value("process_resident_memory_bytes")
        numbers.append(f"{sum(n for _, n in busy):.0f} of {limit:.0f}" if limit else "")
        numbers.append("" if size is None else f"{size / 1e6:.0f} MB")
        detail = escape(component.problem or component.address)
        table.add_row(component.name, state, *numbers, detail)
    return table


def _waiting_table(current: Mapping[str, MetricsSnapshot]) -> Table:
    from rich.table import Table

    from reverie.cli.operate.service_metrics import FAILED_WORK, list_waiting

    table = Table.grid(padding=(0, 3))
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    for text, count, age in list_waiting(current):
        age_text = "" if not age else f"oldest: {age:.0f} s"
        is_alarming = count > 0 and text in FAILED_WORK
        table.add_row(text, f"[red]{count:,.0f}[/]" if is_alarming else f"{count:,.0f}", age_text)
    return table
