"""`reverie dream summaries` and `tend`: what stands in scopes, and the graph looked after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from reverie.cli.asking import desk
from reverie.cli.common import Home, Json, Sets
from reverie.cli.options import Limit, Scope
from reverie.cli.shown import NOTHING, Document, since, tell
from reverie.domain.errors import Invalid

History = Annotated[bool, typer.Option("--history", help="Its versions, newest first.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count what would go; change nothing.")]


class Pass(StrEnum):
    """A pass over the graph."""

    ARCHIVE = "archive"
    COLLECT = "collect"


def summaries(
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
        raise Invalid("--history", "is of one --scope")
    path = "/v1/dream/summaries/history" if history else "/v1/dream/summaries"
    found = desk(home, sets).pages(path, {"scope": scope}, limit)
    tell(found, json, "\n\n".join(map(_summary, found)) or NOTHING)


def _summary(one: Document) -> str:
    head = f"{one['scope']}, version {one['version']}, {since(one['made_at'])}"
    return f"{head}\n{one['content'].strip() or '(its text is not kept)'}"


def tend(
    only: Annotated[list[Pass] | None, typer.Option("--only", help="Only these passes.")] = None,
    dry_run: DryRun = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Tend the graph now: archive, promote, merge, link, rank.

    It happens by itself, too. `reverie gc` is the part that puts away.

    Example: [bold]reverie dream tend[/]
    """
    query = {"only": [one.value for one in only or ()], "dry_run": dry_run}
    done = desk(home, sets).ask("POST", "/v1/dream/tend", query)
    tell(done, json, "\n".join(_tended(done)))


def _tended(done: Document) -> Iterator[str]:
    counts = (
        (name, n) for name, n in done.items() if isinstance(n, int) and name != "looked" and n
    )
    told = ", ".join(f"{n} {name}" for name, n in counts)
    yield f"{done['looked']} looked at: {told or 'nothing to do'}"
    left: Sequence[str] = done["unfinished"]
    if left:
        yield f"more to do: {', '.join(left)}"
