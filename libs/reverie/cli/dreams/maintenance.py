"""`reverie dream summaries` and `tend`: scope summaries, and graph maintenance on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from reverie.cli.app.common import Home, Json, Limit, Scope, Sets
from reverie.cli.app.gateway_client import create_client
from reverie.cli.app.output import EMPTY_MESSAGE, JsonObject, format_age, print_result
from reverie.domain.core.errors import InvalidInput

History = Annotated[bool, typer.Option("--history", help="Its versions, newest first.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count what would go; change nothing.")]


class MaintenanceStep(StrEnum):
    """A pass over the graph."""

    ARCHIVE = "archive"
    COLLECT = "collect"


def list_summaries(
    scope: Scope = None,
    history: History = False,
    limit: Limit = 20,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """The condensed state of each scope, as dreams keep it.

    Example: [bold]reverie dream summaries --scope project/shop --history[/]
    """
    if history and scope is None:
        raise InvalidInput("--history", "is of one --scope")
    path = "/v1/dream/summaries/history" if history else "/v1/dream/summaries"
    items = create_client(home, sets).list_items(path, {"scope": scope}, limit)
    print_result(items, json, "\n\n".join(map(_format_summary, items)) or EMPTY_MESSAGE)


def _format_summary(summary: JsonObject) -> str:
    head = f"{summary['scope']}, version {summary['version']}, {format_age(summary['made_at'])}"
    return f"{head}\n{summary['content'].strip() or '(its text is not kept)'}"


def run_maintenance(
    only: Annotated[
        list[MaintenanceStep] | None, typer.Option("--only", help="Only these passes.")
    ] = None,
    dry_run: DryRun = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Tend the graph now: archive, promote, merge, link, rank.

    It happens by itself, too. `reverie gc` is the part that puts away.

    Example: [bold]reverie dream tend[/]
    """
    query = {"only": [step.value for step in only or ()], "dry_run": dry_run}
    report = create_client(home, sets).request("POST", "/v1/dream/tend", query)
    print_result(report, json, "\n".join(_format_report(report)))


def _format_report(report: JsonObject) -> Iterator[str]:
    counts = (
        (name, n) for name, n in report.items() if isinstance(n, int) and name != "looked" and n
    )
    summary = ", ".join(f"{n} {name}" for name, n in counts)
    yield f"{report['looked']} looked at: {summary or 'nothing to do'}"
    unfinished: Sequence[str] = report["unfinished"]
    if unfinished:
        yield f"more to do: {', '.join(unfinished)}"
