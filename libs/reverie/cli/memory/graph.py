"""`reverie link`, `unlink`, `subgraph`, `impact`, `stale` and `stats`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from reverie.cli.app.gateway_client import (
    MAX_PAGE_SIZE,
    GatewayClient,
    quote_segment,
)
from reverie.cli.app.options import (
    CommonOptions,
    common_options,
    limit_option,
    memory_id_argument,
    project_option,
    scope_option,
)
from reverie.cli.app.output import (
    EMPTY_MESSAGE,
    Columns,
    JsonObject,
    build_table,
    one_line,
    print_warnings,
    short_id,
    short_id_cell,
    text_cell,
)
from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.kinds import ANCHOR_KINDS

if TYPE_CHECKING:
    from rich.tree import Tree


@click.command("link")
@click.argument("source", metavar="FROM", help="A memory's id, or its last eight digits.")
@click.argument("target", metavar="TO", help="A memory's id, or its last eight digits.")
@click.argument(
    "type",
    default="relates_to",
    help="The type: led_to, caused_by, part_of, depends_on, touches, ...",
)
@click.option(
    "--weight", type=click.FloatRange(min=0, max=1), default=1.0, help="The weight, 0 to 1."
)
@common_options
def link(options: CommonOptions, source: str, target: str, type: str, weight: float) -> None:
    """Add an edge between two memories.

    Example: reverie link 3fa9c1d2 90bb12ef led_to
    """
    client = options.gateway()
    ends = {"from": client.resolve_memory_id(source), "to": client.resolve_memory_id(target)}
    response = client.request("POST", "/v1/links", body={**ends, "type": type, "weight": weight})
    outcome = "linked" if response["created"] else "was linked already"
    edge = f"{short_id(ends['from'])} {type} {short_id(ends['to'])} ({response['id']})"
    options.print_result(response, f"{outcome}: {edge}")


@click.command("unlink")
@click.argument("edge", help="An edge's id; or a memory's id, followed by the other memory's.")
@click.argument("other", required=False, help="The memory at the other end.")
@click.option("--type", help="The type, if several edges join the two memories.")
@common_options
def unlink(options: CommonOptions, edge: str, other: str | None, type: str | None) -> None:
    """Remove an edge, given its id or the two memories.

    Example: reverie unlink 3fa9c1d2 90bb12ef
    """
    client = options.gateway()
    id = edge if other is None else _find_edge(client, edge, other, type)
    response = client.request("DELETE", f"/v1/links/{quote_segment(id)}")
    options.print_result(response, f"removed the edge {response['id']}")


def _find_edge(client: GatewayClient, memory: str, other: str, type: str | None) -> str:
    """Returns the edge between two memories. Raises `InvalidInput` if there is not exactly one."""
    ends = {client.resolve_memory_id(memory), client.resolve_memory_id(other)}
    neighbourhood = client.request(
        "GET", f"/v1/memories/{quote_segment(memory)}/subgraph", {"depth": 1, "fan_out": 50}
    )
    matches = [
        edge
        for edge in neighbourhood["edges"]
        if edge["id"] and {edge["from"], edge["to"]} == ends and type in {None, edge["type"]}
    ]
    if not matches:
        raise InvalidInput("edge", f"no edge joins {short_id(memory)} and {short_id(other)}")
    if len(matches) > 1:
        types = ", ".join(edge["type"] for edge in matches)
        raise InvalidInput("--type", f"several edges join them ({types}): choose one")
    return str(matches[0]["id"])


@click.command("subgraph")
@memory_id_argument
@click.option(
    "--depth", type=click.IntRange(1, 5), default=2, help="The number of edges from the memory."
)
@common_options
def subgraph(options: CommonOptions, id: str, depth: int) -> None:
    """Show the graph around a memory.

    Example: reverie subgraph 3fa9c1d2 --depth 1
    """
    response = options.gateway().request(
        "GET", f"/v1/memories/{quote_segment(id)}/subgraph", {"depth": depth}
    )
    if response["truncated"]:
        print_warnings([f"the graph is truncated by {', '.join(response['truncated_by'])}"])
    options.print_result(response, _build_tree(response))


def _build_tree(document: JsonObject) -> Tree:
    """The graph as a tree; each memory is a child of the memory from which it was reached first."""
    from rich.text import Text
    from rich.tree import Tree

    nodes = {node["id"]: node for node in document["nodes"]}
    root = Tree(Text(_format_node(nodes[document["root"]])))
    branches = {document["root"]: root}
    for node in sorted(nodes, key=lambda id: nodes[id]["depth"]):
        for edge in document["edges"]:
            if node not in branches or node not in (edge["from"], edge["to"]):
                continue
            arrow, neighbour = ("->", edge["to"]) if edge["from"] == node else ("<-", edge["from"])
            if neighbour in nodes and neighbour not in branches:
                label = f"{arrow} {edge['type']}  {_format_node(nodes[neighbour])}"
                branches[neighbour] = branches[node].add(Text(label, overflow="fold"))
    return root


def _format_node(node: JsonObject) -> str:
    status = "" if node["status"] == "active" else f" [{node['status']}]"
    return f"{node['short_id']} {node['kind']}{status}: {one_line(node['label'], 90)}"


@click.command("impact")
@click.argument("path", required=False, help="A file, relative to the root of the repository.")
@click.option("--entity", help="A package, a service or another entity.")
@project_option
@limit_option(50)
@common_options
def impact(
    options: CommonOptions, path: str | None, entity: str | None, project: str | None, limit: int
) -> None:
    """List memories that a change of a file or an entity could make stale.

    Example: reverie impact src/cart.py --project shop
    """
    client = options.gateway(project)
    if path is None and entity is None:
        raise InvalidInput("path", "give a file or an --entity")
    query = {"path": path, "entity": entity, "project": client.project}
    page = client.request("GET", "/v1/impact", {**query, "limit": min(limit, MAX_PAGE_SIZE)})
    while page["next"] and len(page["items"]) < limit:
        next_page = client.request(
            "GET", "/v1/impact", {**query, "limit": MAX_PAGE_SIZE, "cursor": page["next"]}
        )
        page |= {"items": [*page["items"], *next_page["items"]][:limit], "next": next_page["next"]}
    options.print_result(page, build_table(page["items"], _IMPACT_COLUMNS))


_IMPACT_COLUMNS: Columns = {
    "id": short_id_cell("id"),
    "grade": "grade",
    "score": "score",
    "kind": "kind",
    "memory": text_cell("label", 160),
}


POLL_INTERVAL = 0.3


@click.command("stale")
@project_option
@scope_option
@limit_option(50)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Seconds to wait for the first one, for example after a commit was announced.",
)
@common_options
def stale(
    options: CommonOptions, project: str | None, scope: str | None, limit: int, wait: float
) -> None:
    """List memories that may be outdated, and the commits that changed their code.

    Example: reverie stale --project shop
    """
    client = options.gateway(project)
    query = {"project": None if scope else client.project, "scope": scope}
    end = time.monotonic() + wait
    while not (items := client.list_items("/v1/stale", query, limit)) and time.monotonic() < end:
        time.sleep(POLL_INTERVAL)
    options.print_result(items, "\n\n".join(map(_format_stale, items)) or EMPTY_MESSAGE)


def _format_stale(item: JsonObject) -> str:
    memory = item["memory"]
    head = f"{memory['short_id']}  {item['grade']} {item['score']:.2f}  {memory['kind']}"
    lines = [head, f"  {one_line(memory['content'], 200)}"]
    lines += [
        f"  {evidence['commit'][:9]} {evidence['change']} {evidence['path']}: "
        f"{one_line(evidence['subject'], 80)}"
        for evidence in item["evidence"]
    ]
    return "\n".join(lines)


@click.command("stats")
@project_option
@scope_option
@common_options
def stats(options: CommonOptions, project: str | None, scope: str | None) -> None:
    """Count memories, edges and components of the graph.

    Without a project or a scope, it counts everything that the key may read.

    Example: reverie stats --project shop
    """
    query = {"project": project, "scope": scope}
    stats = options.gateway(project).request("GET", "/v1/graph/stats", query)
    largest = f"the largest of {stats['largest_component']:,}"
    by_kind = stats["nodes_by_kind"]
    anchors = {kind: count for kind, count in by_kind.items() if kind in ANCHOR_KINDS}
    memories = {kind: count for kind, count in by_kind.items() if kind not in ANCHOR_KINDS}
    options.print_result(
        stats,
        f"memories    {stats['memories']:,} ({_format_counts(memories)})",
        f"anchors     {stats['nodes'] - stats['memories']:,} ({_format_counts(anchors)})",
        f"status      {_format_counts(stats['nodes_by_status'])}",
        f"edges       {stats['edges']:,} ({_format_counts(stats['edges_by_type'])})",
        f"components  {stats['components']:,}, {largest}; nodes without edges {stats['orphans']:,}",
    )


def _format_counts(numbers: JsonObject) -> str:
    by_count = sorted(numbers.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count:,} {name}" for name, count in by_count) or "none"
