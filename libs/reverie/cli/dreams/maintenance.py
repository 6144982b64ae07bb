"""`reverie maintenance` and `reverie gc`: run maintenance of the memory graph on request."""

from __future__ import annotations

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.options import CommonOptions, common_options, dry_run_option
from reverie.cli.app.output import plural

app = click.Group(
    "maintenance", help="Run maintenance of the memory graph.", epilog=EXIT_CODES_HELP
)


@app.command("run")
@click.option(
    "--step",
    multiple=True,
    type=click.Choice(["archive", "collect"]),
    help="Run only this step; may be repeated.",
)
@dry_run_option
@common_options
def run_maintenance(options: CommonOptions, step: tuple[str, ...], dry_run: bool) -> None:
    """Run maintenance now: archive, promote, merge, link, rank.

    Maintenance also runs on a schedule. `reverie gc` runs its archive and
    collect steps only.

    Example: reverie maintenance run
    """
    query = {"steps": step, "dry_run": dry_run}
    report = options.gateway().request("POST", "/v1/maintenance/run", query)
    counts = ", ".join(
        f"{n} {name}"
        for name, n in report.items()
        if isinstance(n, int) and name != "examined" and n
    )
    lines = [f"{plural(report['examined'], 'memory')} checked: {counts or 'nothing to do'}"]
    lines += [f"unfinished: {', '.join(report['unfinished'])}"] if report["unfinished"] else []
    options.print_result(report, *lines)


@click.command("gc")
@click.option("--yes", "-y", is_flag=True, help="Apply the changes; default: only show them.")
@common_options
def gc(options: CommonOptions, yes: bool) -> None:
    """Archive decayed memories, and delete unused files and entities.

    Without --yes it only shows what would happen. `reverie recall --archived`
    finds archived memories, and `reverie restore` restores them.

    Example: reverie gc --yes
    """
    query = {"steps": ["archive", "collect"], "dry_run": not yes}
    report = options.gateway().request("POST", "/v1/maintenance/run", query)
    counts = f"{report['archived']} archived, {report['collected']} files and entities deleted"
    summary = f"{counts}; {plural(report['examined'], 'memory')} checked"
    options.print_result(report, summary if yes else f"would be: {summary} (apply with --yes)")
