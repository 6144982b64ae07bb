"""`reverie status`: addresses and health of every component, and graph numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.app.errors import FAILED, NOT_RUNNING
from reverie.cli.app.options import CommonOptions, common_options
from reverie.cli.app.output import abbreviate_home, err, plural, print_plain
from reverie.domain.core.errors import ReverieError

if TYPE_CHECKING:
    from rich.table import Table

    from reverie.cli.operate.component_status import ComponentStatus


@click.command("status")
@click.option("--watch", "-w", is_flag=True, help="Refresh until Ctrl-C.")
@common_options
def status(options: CommonOptions, watch: bool) -> None:
    """Show the address and health of every component, and count memories.

    With REVERIE_GATEWAY_URL, it checks that gateway only. --watch shows the
    request rates of each service and the queues.

    Example: reverie status --json

    Exit codes: 0 all ready, 1 a component is not ready, 2 usage, 3 not running.
    """
    settings = options.settings()
    if watch:
        from reverie.cli.operate.status_watch import watch_status

        watch_status(settings)
        return
    from dataclasses import asdict

    from reverie.cli.operate.component_status import check_components, http_urls
    from reverie.cli.operate.service_metrics import list_failed, scrape_all

    system = check_components(settings)
    components, is_running = system.components, system.running
    is_ready = is_running and all(component.ok for component in components)
    graph = _fetch_graph_stats(options) if is_running else None
    failed = list_failed(scrape_all(http_urls(system))) if is_running else {}
    gateway = next((c.address for c in components if c.name in {"recall", "gateway"}), None)
    document = {
        "running": is_running,
        "ready": is_ready,
        "gateway": gateway if is_running else None,
        "home": str(settings.home),
        "key_file": str(system.key_file) if system.key_file else None,
        "components": [asdict(component) for component in components],
        "graph": graph,
        "failed": failed,
    }
    if is_running or options.json:
        options.print_result(document, _component_table(components))
    else:
        place = abbreviate_home(settings.home)
        err().print(f"Reverie is not running on {place}: start `reverie up`", markup=False)
    if graph and not options.json:
        details = f"{plural(graph['edges'], 'edge')}, {plural(graph['components'], 'component')}"
        print_plain(f"\n{plural(graph['memories'], 'memory')}, {details} (see `reverie stats`)")
    if failed and not options.json:
        counts = ", ".join(f"{text}: {count:,}" for text, count in failed.items())
        print_plain(f"{counts} (see `reverie doctor`)")
    if not is_ready:
        raise click.exceptions.Exit(FAILED if is_running else NOT_RUNNING)


def _fetch_graph_stats(options: CommonOptions) -> dict[str, Any] | None:
    """Fetches the numbers of the graph; None if the gateway does not respond."""
    try:
        return dict(options.gateway().request("GET", "/v1/graph/stats"))
    except ReverieError:
        return None


def _component_table(components: Sequence[ComponentStatus]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 3))
    for component in components:
        state = Text("ready", "green") if component.ok else Text("not ready", "red")
        table.add_row(component.name, component.address, state, component.problem)
    return table
