"""`reverie trace`: how a recall came to its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.asking import desk
from reverie.cli.common import Home, Json, Sets, out, print_json

if TYPE_CHECKING:
    from rich.table import Table

Id = Annotated[str | None, typer.Argument(help="A recall's trace_id; none: the latest recalls.")]
Session = Annotated[str | None, typer.Option("--session", help="Only recalls in this session.")]
ListLimit = Annotated[int, typer.Option("--limit", min=1, max=200, help="How many to list.")]

Document = Mapping[str, Any]


def trace(
    id: Id = None,
    session: Session = None,
    limit: ListLimit = 20,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Why a recall answered what it did: arms, hops, factors, what was cut.

    Example: [bold]reverie trace 4bf92f3577b34da6a3ce929d0e0e4736[/]
    """
    at = desk(home, sets)
    if id is None:
        query = {"limit": str(limit)} | ({"session": session} if session else {})
        found = at.ask("GET", "/v1/traces", query)
        print_json(found["items"]) if json else out().print(_listed(found["items"]))
        return
    found = at.ask("GET", f"/v1/traces/{id}", {})
    if json:
        print_json(found)
        return
    _show(found)


def _listed(items: list[Document]) -> Table | str:
    from rich.table import Table
    from rich.text import Text

    if not items:
        return "Nothing there."
    table = Table(box=None)
    for name in ("trace", "at", "intent", "answered", "ms"):
        table.add_column(name, no_wrap=True)
    for one in items:
        answered = f"{one['returned']} of {one['found']}"
        trace_id = one["trace_id"] or one["id"]
        at, took = one["at"][5:16].replace("T", " "), str(round(one["milliseconds"]))
        table.add_row(trace_id, at, one["intent"], answered, took)
        table.add_row(Text(f"  {_clipped(one['query'], 30)}"))
    return table


def _show(found: Document) -> None:
    console = out()
    for line in _head(found):
        console.print(line, markup=False)
    told = found["candidates"]
    console.print(_answered([one for one in told if one["rank"]]))
    cut = [one for one in told if not one["rank"]]
    if cut:
        console.print("\nnot in the answer")
        console.print(_cut(cut))
    if found["omitted"]:
        console.print(f"and {found['omitted']} more")


def _head(found: Document) -> Iterator[str]:
    """What was asked, and what the recall took."""
    yield f"question   {_clipped(found['query'])}"
    yield f"read as    {found['intent']}, {found['language']}{_read(found)}"
    yield f"in         {', '.join(found['scopes'])}"
    yield f"by         {found['actor']} at {found['at'][:19]}"
    arms = ", ".join(f"{name} {count}" for name, count in found["arms"].items())
    yield f"found      {found['found']} ({arms}); answered {found['returned']}"
    budget = found["budget_tokens"] or "no budget"
    yield f"tokens     {found['tokens']} of {budget}; at most {found['limit']} memories"
    took = ", ".join(f"{name} {ms}" for name, ms in found["took"].items())
    yield f"took       {found['milliseconds']} ms: {took}"
    if found["degraded"]:
        yield f"missing    {', '.join(found['degraded'])}"
    yield ""


def _read(found: Document) -> str:
    period = found["period"]
    said = [
        *(f'"{phrase}"' for phrase in found["phrases"]),
        *found["identifiers"],
        *found["paths"],
        *([f"{period['since'][:16]} to {period['until'][:16]}"] if period else []),
    ]
    return "".join(f", {one}" for one in said)


def _answered(told: list[Document]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("", "score", "memory", "arms", "factors", "hops", box=None)
    for one in told:
        cells = (_memory(one), _arms(one), _factors(one), _hops(one))
        table.add_row(str(one["rank"]), f"{one['score']:.3f}", *map(Text, cells))
    return table


def _cut(told: list[Document]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("why", "score", "memory", "arms", "factors", box=None)
    for one in told:
        why = one["cut"] + (f" of {_short(one['cut_by'])}" if one["cut_by"] else "")
        cells = (_memory(one), _arms(one), _factors(one))
        table.add_row(why, f"{one['score']:.3f}", *map(Text, cells))
    return table


def _memory(one: Document) -> str:
    return f"{_short(one['id'])} {_clipped(one['label'] or one['type'], 60)}"


def _arms(one: Document) -> str:
    return "\n".join(_arm(name, arm) for name, arm in one["arms"].items())


def _arm(name: str, arm: Document) -> str:
    score = "" if arm["score"] is None else f" ({arm['score']:.2f})"
    return f"{name} {arm['rank']}{score}"


def _factors(one: Document) -> str:
    return "\n".join(f"{name} {factor:.2f}" for name, factor in one["factors"].items())


def _hops(one: Document) -> str:
    return "\n".join(
        f"{hop['type']} {_short(hop['source'])} +{hop['lent']:.3f}" for hop in one["hops"]
    )


def _short(one: str) -> str:
    return one.replace("-", "")[-8:]


def _clipped(text: str, most: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
