"""`reverie maintenance` and `reverie gc`: run maintenance of the memory graph on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.gateway_client import create_client
from reverie.cli.app.options import common_options, dry_run_option
from reverie.cli.app.output import JsonObject, print_result

app = click.Group(
    "maintenance", help="Run maintenance of the memory graph.", epilog=EXIT_CODES_HELP
)


@app.command("run")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(["archive", "collect"]),
    help="Run only this step; may be repeated.",
)
@dry_run_option
@common_options
def run_maintenance(
    only: tuple[str, ...], dry_run: bool, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """Run maintenance now: archive, promote, merge, link, rank.

    Maintenance also runs on a schedule. `reverie gc` runs its archive and
    collect steps only.

    Example: reverie maintenance run
    """
    query = {"only": only, "dry_run": dry_run}
    report = create_client(home, sets).request("POST", "/v1/dream/tend", query)
    print_result(report, json, "\n".join(_format_report(report)))


def _format_report(report: JsonObject) -> Iterator[str]:
    counts = (
        (name, n) for name, n in report.items() if isinstance(n, int) and name != "looked" and n
    )
    summary = ", ".join(f"{n} {name}" for name, n in counts)
    yield f"{report['looked']} memories checked: {summary or 'nothing to do'}"
    unfinished: Sequence[str] = report["unfinished"]
    if unfinished:
        yield f"unfinished: {', '.join(unfinished)}"


@click.command("gc")
@click.option("--yes", "-y", is_flag=True, help="Apply the changes; default: only show them.")
@common_options
def gc(yes: bool, home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """Archive decayed memories, and delete unused files and entities.

    Without --yes it only shows what would happen. `reverie recall --archived`
    finds archived memories, and `reverie restore` restores them.

    Example: reverie gc --yes
    """
    query = {"only": ["archive", "collect"], "dry_run": not yes}
    report = create_client(home, sets).request("POST", "/v1/dream/tend", query)
    counts = f"{report['archived']} archived, {report['collected']} files and entities deleted"
    summary = f"{counts}; {report['looked']} memories checked"
    print_result(report, json, summary if yes else f"would be: {summary} (apply with --yes)")
