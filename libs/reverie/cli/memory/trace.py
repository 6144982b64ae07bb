"""`reverie trace`: explains how a recall came to its result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.app.gateway_client import create_client
from reverie.cli.app.options import common_options, limit_option
from reverie.cli.app.output import (
    JsonObject,
    build_table,
    one_line,
    out,
    print_json,
    print_result,
    short_id,
    text_cell,
)

if TYPE_CHECKING:
    from rich.table import Table


@click.command("trace")
@click.argument(
    "id", required=False, help="The trace_id of a recall; without it, list the latest recalls."
)
@click.option("--session", help="Only recalls in this session.")
@limit_option(20, 200)
@common_options
def trace(
    id: str | None,
    session: str | None,
    limit: int,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Explain the result of a recall: retrievers, graph hops, factors, cuts.

    Example: reverie trace 4bf92f3577b34da6a3ce929d0e0e4736
    """
    client = create_client(home, sets)
    if id is None:
        query = {"limit": limit, "session": session}
        items = client.request("GET", "/v1/traces", query)["items"]
        print_result(items, json, build_table(items, _LIST_COLUMNS))
        return
    response = client.request("GET", f"/v1/traces/{id}", {})
    if json:
        print_json(response)
    else:
        _print_trace(response)


_LIST_COLUMNS: dict[str, Any] = {
    "trace": lambda item: item["trace_id"] or item["id"],
    "at": lambda item: item["at"][5:16].replace("T", " "),
    "intent": "intent",
    "returned": lambda item: f"{item['returned']} of {item['found']}",
    "ms": lambda item: round(item["milliseconds"]),
    "question": text_cell("query", 60),
}


def _print_trace(document: JsonObject) -> None:
    console = out()
    for line in _format_header(document):
        console.print(line, markup=False)
    candidates = document["candidates"]
    console.print(_answer_table([candidate for candidate in candidates if candidate["rank"]]))
    cut = [candidate for candidate in candidates if not candidate["rank"]]
    if cut:
        console.print("\nnot in the result")
        console.print(_cut_table(cut))
    if document["omitted"]:
        console.print(f"and {document['omitted']} more")


def _format_header(document: JsonObject) -> Iterator[str]:
    """The question, how it was understood, and the durations."""
    yield f"question   {one_line(document['query'], 200)}"
    yield (
        f"parsed as  {document['intent']}, {document['language']}{_format_interpretation(document)}"
    )
    yield f"scopes     {', '.join(document['scopes'])}"
    yield f"actor      {document['actor']} at {document['at'][:19]}"
    arms = ", ".join(f"{name} {count}" for name, count in document["arms"].items())
    yield f"found      {document['found']} ({arms}); returned {document['returned']}"
    budget = document["budget_tokens"] or "no budget"
    yield f"tokens     {document['tokens']} of {budget}; at most {document['limit']} memories"
    durations = ", ".join(f"{name} {ms}" for name, ms in document["took"].items())
    yield f"duration   {document['milliseconds']} ms: {durations}"
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

    table = Table("reason", "score", "memory", "arms", "factors", box=None)
    for candidate in candidates:
        reason = candidate["cut"] + (
            f" of {short_id(candidate['cut_by'])}" if candidate["cut_by"] else ""
        )
        cells = (_format_memory(candidate), _format_arms(candidate), _format_factors(candidate))
        table.add_row(reason, f"{candidate['score']:.3f}", *map(Text, cells))
    return table


def _format_memory(candidate: JsonObject) -> str:
    return f"{short_id(candidate['id'])} {one_line(candidate['label'] or candidate['type'], 60)}"


def _format_arms(candidate: JsonObject) -> str:
    return "\n".join(
        f"{name} {arm['rank']}" + ("" if arm["score"] is None else f" ({arm['score']:.2f})")
        for name, arm in candidate["arms"].items()
    )


def _format_factors(candidate: JsonObject) -> str:
    return "\n".join(f"{name} {factor:.2f}" for name, factor in candidate["factors"].items())


def _format_hops(candidate: JsonObject) -> str:
    return "\n".join(
        f"{hop['type']} {short_id(hop['source'])} +{hop['lent']:.3f}" for hop in candidate["hops"]
    )
