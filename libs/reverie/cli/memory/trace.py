"""`reverie trace`: explains how a recall came to its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.app.common import Home, Json, Sets, out, print_json
from reverie.cli.app.gateway_client import create_client

if TYPE_CHECKING:
    from rich.table import Table

Id = Annotated[str | None, typer.Argument(help="A recall's trace_id; none: the latest recalls.")]
Session = Annotated[str | None, typer.Option("--session", help="Only recalls in this session.")]
ListLimit = Annotated[int, typer.Option("--limit", min=1, max=200, help="How many to list.")]

JsonObject = Mapping[str, Any]


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
    client = create_client(home, sets)
    if id is None:
        query = {"limit": str(limit)} | ({"session": session} if session else {})
        response = client.request("GET", "/v1/traces", query)
        print_json(response["items"]) if json else out().print(_list_table(response["items"]))
        return
    response = client.request("GET", f"/v1/traces/{id}", {})
    if json:
        print_json(response)
        return
    _print_trace(response)


def _list_table(items: list[JsonObject]) -> Table | str:
    from rich.table import Table
    from rich.text import Text

    if not items:
        return "Nothing there."
    table = Table(box=None)
    for name in ("trace", "at", "intent", "answered", "ms"):
        table.add_column(name, no_wrap=True)
    for item in items:
        answered = f"{item['returned']} of {item['found']}"
        trace_id = item["trace_id"] or item["id"]
        timestamp, duration = item["at"][5:16].replace("T", " "), str(round(item["milliseconds"]))
        table.add_row(trace_id, timestamp, item["intent"], answered, duration)
        table.add_row(Text(f"  {_clip(item['query'], 30)}"))
    return table


def _print_trace(document: JsonObject) -> None:
    console = out()
    for line in _format_header(document):
        console.print(line, markup=False)
    candidates = document["candidates"]
    console.print(_answer_table([candidate for candidate in candidates if candidate["rank"]]))
    cut = [candidate for candidate in candidates if not candidate["rank"]]
    if cut:
        console.print("\nnot in the answer")
        console.print(_cut_table(cut))
    if document["omitted"]:
        console.print(f"and {document['omitted']} more")


def _format_header(document: JsonObject) -> Iterator[str]:
    """What was asked, and what the recall took."""
    yield f"question   {_clip(document['query'])}"
    yield (
        f"read as    {document['intent']}, {document['language']}{_format_interpretation(document)}"
    )
    yield f"in         {', '.join(document['scopes'])}"
    yield f"by         {document['actor']} at {document['at'][:19]}"
    arms = ", ".join(f"{name} {count}" for name, count in document["arms"].items())
    yield f"found      {document['found']} ({arms}); answered {document['returned']}"
    budget = document["budget_tokens"] or "no budget"
    yield f"tokens     {document['tokens']} of {budget}; at most {document['limit']} memories"
    durations = ", ".join(f"{name} {ms}" for name, ms in document["took"].items())
    yield f"took       {document['milliseconds']} ms: {durations}"
    if document["degraded"]:
        yield f"missing    {', '.join(document['degraded'])}"
    yield ""


def _format_interpretation(document: JsonObject) -> str:
    period = document["period"]
    parts = [
        *(f'"{phrase}"' for phrase in document["phrases"]),
        *document["identifiers"],
        *document["paths"],
        *([f"{period['since'][:16]} to {period['until'][:16]}"] if period else []),
    ]
    return "".join(f", {part}" for part in parts)


def _answer_table(candidates: list[JsonObject]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("", "score", "memory", "arms", "factors", "hops", box=None)
    for candidate in candidates:
        cells = (
            _format_memory(candidate),
            _format_arms(candidate),
            _format_factors(candidate),
            _format_hops(candidate),
        )
        table.add_row(str(candidate["rank"]), f"{candidate['score']:.3f}", *map(Text, cells))
    return table


def _cut_table(candidates: list[JsonObject]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("why", "score", "memory", "arms", "factors", box=None)
    for candidate in candidates:
        reason = candidate["cut"] + (
            f" of {_short_id(candidate['cut_by'])}" if candidate["cut_by"] else ""
        )
        cells = (_format_memory(candidate), _format_arms(candidate), _format_factors(candidate))
        table.add_row(reason, f"{candidate['score']:.3f}", *map(Text, cells))
    return table


def _format_memory(candidate: JsonObject) -> str:
    return f"{_short_id(candidate['id'])} {_clip(candidate['label'] or candidate['type'], 60)}"


def _format_arms(candidate: JsonObject) -> str:
    return "\n".join(_format_arm(name, arm) for name, arm in candidate["arms"].items())


def _format_arm(name: str, arm: JsonObject) -> str:
    score = "" if arm["score"] is None else f" ({arm['score']:.2f})"
    return f"{name} {arm['rank']}{score}"


def _format_factors(candidate: JsonObject) -> str:
    return "\n".join(f"{name} {factor:.2f}" for name, factor in candidate["factors"].items())


def _format_hops(candidate: JsonObject) -> str:
    return "\n".join(
        f"{hop['type']} {_short_id(hop['source'])} +{hop['lent']:.3f}" for hop in candidate["hops"]
    )


def _short_id(id: str) -> str:
    return id.replace("-", "")[-8:]


def _clip(text: str, limit: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
