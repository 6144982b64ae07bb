"""`reverie trace`: explains how a recall came to its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from reverie.cli.app.options import CommonOptions, common_options, limit_option
from reverie.cli.app.output import (
    Columns,
    JsonObject,
    one_line,
    short_id,
    text_cell,
)

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command("trace")
@click.argument(
    "id",
    required=False,
    help="The trace_id of a recall, or its last eight digits; without it, list the latest recalls.",
)
@click.option("--session", help="Only recalls in this session.")
@click.option(
    "--confirm", is_flag=True, help="Confirm that the agent received what this preflow gave."
)
@limit_option(20, 200)
@common_options
def trace(
    options: CommonOptions, id: str | None, session: str | None, confirm: bool, limit: int
) -> None:
    """Explain a recall: how each candidate was found and scored, and why it was left out.

    Example: reverie trace 0e0e4736
    """
    client = options.gateway()
    if id is None:
        query = {"limit": limit, "session": session}
        items = client.request("GET", "/v1/traces", query)["items"]
        options.print_table(items, _LIST_COLUMNS)
        return
    if confirm:
        receipt = client.request("POST", f"/v1/traces/{id}/delivery")
        options.print_result(receipt, f"confirmed  {receipt['delivered_at'][:19]}")
        return
    response = client.request("GET", f"/v1/traces/{id}", {})
    candidates = response["candidates"]
    cut = [candidate for candidate in candidates if not candidate["rank"]]
    lines: list[RenderableType] = [*_format_header(response)]
    lines.append(_answer_table([candidate for candidate in candidates if candidate["rank"]]))
    lines += ["\nnot in the result", _cut_table(cut)] if cut else []
    lines += [f"and {response['omitted']} more"] if response["omitted"] else []
    if response["deliveries"]:
        lines += ["\ngiven, or held back and why", _delivery_table(response["deliveries"])]
        used = (f"{x['name']} {x['tokens']}/{x['budget_tokens']}" for x in response["layers"])
        lines.append(f"tokens by layer: {', '.join(used)}")
    options.print_result(response, *lines)


_LIST_COLUMNS: Columns = {
    "trace": lambda item: item["trace_id"] or item["id"],
    "at": lambda item: item["at"][5:16].replace("T", " "),
    "intent": "intent",
    "returned": lambda item: f"{item['returned']} of {item['found']}",
    "given": lambda item: _format_deliveries(item),
    "ms": lambda item: round(item["milliseconds"]),
    "question": text_cell("query", 60),
}


def _format_header(document: JsonObject) -> Iterator[str]:
    """The question, how it was understood, and the durations."""
    label = f"before a{'n edit' if document['before'] == 'edit' else ' command'} of "
    yield f"question   {label if document['before'] else ''}{one_line(document['query'], 200)}"
    period = document["period"]
    parsed = [
        document["intent"],
        document["language"],
        *(f'"{phrase}"' for phrase in document["phrases"]),
        *document["identifiers"],
        *document["paths"],
        *([f"{period['since'][:16]} to {period['until'][:16]}"] if period else []),
    ]
    yield f"parsed as  {', '.join(parsed)}"
    yield f"scopes     {', '.join(document['scopes'])}"
    yield f"actor      {document['actor']} at {document['at'][:19]}"
    arms = ", ".join(f"{name} {count}" for name, count in document["arms"].items())
    yield f"found      {document['found']} ({arms}); returned {document['returned']}"
    budget = document["budget_tokens"] or "no budget"
    yield f"tokens     {document['tokens']} of {budget}; at most {document['limit']} memories"
    durations = ", ".join(f"{name} {ms}" for name, ms in document["timings"].items())
    yield f"duration   {document['milliseconds']} ms: {durations}"
    if document["given"] is not None:
        yield f"given      {_format_deliveries(document)}"
    if document["degraded"]:
        yield f"missing    {', '.join(document['degraded'])}"
    yield ""


def _answer_table(candidates: Sequence[JsonObject]) -> RenderableType:
    from rich.table import Table

    table = Table("", "score", "memory", "arms", "factors", "hops", box=None)
    for candidate in candidates:
        hops = (
            f"{hop['type']} {short_id(hop['source'])} +{hop['contribution']:.3f}"
            for hop in candidate["hops"]
        )
        table.add_row(str(candidate["rank"]), *_common_cells(candidate), "\n".join(hops))
    return table


def _format_deliveries(document: JsonObject) -> str:
    """How many memories a preflow gave, and whether a hook confirmed them."""
    if document["given"] is None:
        return ""
    state = "confirmed" if document["delivered_at"] else "not confirmed"
    return f"{document['given']} ({state})" if document["given"] else "0"


def _delivery_table(deliveries: Sequence[JsonObject]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table("outcome", "layer", "relevance", "memory", box=None)
    for item in deliveries:
        relevance = "" if item["relevance"] is None else f"{item['relevance']:.3f}"
        memory = Text(f"{short_id(item['id'])} {one_line(item['label'] or '', 60)}")
        table.add_row(item["outcome"], item["layer"] or "", relevance, memory)
    return table


def _cut_table(candidates: Sequence[JsonObject]) -> RenderableType:
    from rich.table import Table

    table = Table("reason", "score", "memory", "arms", "factors", box=None)
    for candidate in candidates:
        by = f" of {short_id(candidate['rejected_for'])}" if candidate["rejected_for"] else ""
        table.add_row(f"{candidate['rejection_reason']}{by}", *_common_cells(candidate))
    return table


def _common_cells(candidate: JsonObject) -> Iterator[RenderableType]:
    """The score, the memory, its ranks by retriever, and the factors of its score."""
    from rich.text import Text

    label = one_line(candidate["label"] or candidate["type"], 60)
    arms = (
        f"{name} {arm['rank']}" + ("" if arm["score"] is None else f" ({arm['score']:.2f})")
        for name, arm in candidate["arms"].items()
    )
    factors = (f"{name} {factor:.2f}" for name, factor in candidate["factors"].items())
    yield f"{candidate['score']:.3f}"
    yield Text(f"{short_id(candidate['id'])} {label}")
    yield Text("\n".join(arms))
    yield Text("\n".join(factors))
