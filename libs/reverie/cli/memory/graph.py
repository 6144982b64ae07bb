"""`reverie link`, `unlink`, `subgraph`, `impact`, `stale` and `stats`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.app.common import Depth, Home, Id, Json, Limit, Project, Scope, Sets
from reverie.cli.app.gateway_client import (
    MAX_PAGE_SIZE,
    GatewayClient,
    create_client,
    quote_segment,
)
from reverie.cli.app.output import (
    EMPTY_MESSAGE,
    JsonObject,
    build_table,
    one_line,
    print_result,
    short_id,
    short_id_cell,
    text_cell,
)
from reverie.cli.app.output import print_warnings as warned
from reverie.domain.core.errors import InvalidInput

if TYPE_CHECKING:
    from rich.tree import Tree

From = Annotated[str, typer.Argument(metavar="FROM", help="A memory's id, also short.")]
To = Annotated[str, typer.Argument(metavar="TO", help="A memory's id, also short.")]
Type = Annotated[str, typer.Argument(help="As led_to, caused_by, part_of, depends_on, touches.")]
AnyType = Annotated[str | None, typer.Option("--type", help="Which edge of several.")]
Weight = Annotated[float, typer.Option("--weight", min=0, max=1, help="How strong, 0 to 1.")]
Edge = Annotated[str, typer.Argument(help="An edge's id; or a memory's, with the other's behind.")]
Other = Annotated[str | None, typer.Argument(help="The memory at the other end.")]
Path = Annotated[str | None, typer.Argument(help="A file, as the repository names it.")]
Entity = Annotated[str | None, typer.Option("--entity", help="A package, a service, a name.")]


def link(
    source: From,
    target: To,
    type: Type = "relates_to",
    weight: Weight = 1.0,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Connect two memories, so that one is found through the other.

    Example: [bold]reverie link 3fa9c1d2 90bb12ef led_to[/]
    """
    client = create_client(home, sets)
    ends = {"from": client.resolve_memory_id(source), "to": client.resolve_memory_id(target)}
    response = client.request("POST", "/v1/links", body={**ends, "type": type, "weight": weight})
    outcome = "linked" if response["created"] else "was linked before"
    print_result(
        response,
        json,
        f"{outcome}: {short_id(ends['from'])} {type} {short_id(ends['to'])} ({response['id']})",
    )


def unlink(
    edge: Edge,
    other: Other = None,
    type: AnyType = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Remove an edge, by its id or by the two memories that it joins.

    Example: [bold]reverie unlink 3fa9c1d2 90bb12ef[/]
    """
    client = create_client(home, sets)
    id = edge if other is None else _find_edge(client, edge, other, type)
    response = client.request("DELETE", f"/v1/links/{quote_segment(id)}")
    print_result(response, json, f"the edge {response['id']} is gone")


def _find_edge(client: GatewayClient, memory: str, other: str, type: str | None) -> str:
    """The one edge between two memories. Raises `InvalidInput` where there is none, or several."""
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
        raise InvalidInput("edge", f"none joins {short_id(memory)} and {short_id(other)}")
    if len(matches) > 1:
        types = ", ".join(edge["type"] for edge in matches)
        raise InvalidInput("--type", f"there are several edges ({types}): say which")
    return str(matches[0]["id"])


def subgraph(
    id: Id, depth: Depth = 2, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """What lies around a memory: why it came to be, what depends on it.

    Example: [bold]reverie subgraph 3fa9c1d2 --depth 1[/]
    """
    response = create_client(home, sets).request(
        "GET", f"/v1/memories/{quote_segment(id)}/subgraph", {"depth": depth}
    )
    if response["truncated"]:
        warned([f"not all is shown: cut by {', '.join(response['cut_by'])}"])
    print_result(response, json, _build_tree(response))


def _build_tree(document: JsonObject) -> Tree:
    """The walk from the root; each memory hangs where it was reached first."""
    from rich.text import Text
    from rich.tree import Tree

    nodes = {node["id"]: node for node in document["nodes"]}
    root = Tree(Text(_format_node(nodes[document["root"]])))
    branches = {document["root"]: root}
    for node in sorted(document["nodes"], key=lambda item: item["depth"]):
        for edge, neighbour in _incident_edges(document["edges"], node["id"]):
            if neighbour in nodes and neighbour not in branches and node["id"] in branches:
                arrow = "->" if edge["from"] == node["id"] else "<-"
                text = Text(
                    f"{arrow} {edge['type']}  {_format_node(nodes[neighbour])}", overflow="fold"
                )
                branches[neighbour] = branches[node["id"]].add(text)
    return root


def _incident_edges(edges: Sequence[JsonObject], node: str) -> Iterator[tuple[JsonObject, str]]:
    for edge in edges:
        if edge["from"] == node:
            yield edge, edge["to"]
        elif edge["to"] == node:
            yield edge, edge["from"]


def _format_node(node: JsonObject) -> str:
    status = "" if node["status"] == "active" else f" [{node['status']}]"
    return f"{node['short_id']} {node['kind']}{status}: {one_line(node['label'], 90)}"


def impact(
    path: Path = None,
    entity: Entity = None,
    project: Project = None,
    limit: Limit = 50,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Memories that a change of a file or an entity would make doubtful.

    Example: [bold]reverie impact src/cart.py --project shop[/]
    """
    client = create_client(home, sets, project)
    if path is None and entity is None:
        raise InvalidInput("path", "name a file, or an --entity")
    query = {"path": path, "entity": entity, "project": client.project}
    page = client.request("GET", "/v1/impact", {**query, "limit": min(limit, MAX_PAGE_SIZE)})
    while page["next"] and len(page["items"]) < limit:
        next_page = client.request(
            "GET", "/v1/impact", {**query, "limit": MAX_PAGE_SIZE, "cursor": page["next"]}
        )
        page |= {"items": [*page["items"], *next_page["items"]][:limit], "next": next_page["next"]}
    print_result(page, json, build_table(page["items"], _IMPACT_COLUMNS))


_IMPACT_COLUMNS: dict[str, Any] = {
    "id": short_id_cell("id"),
    "grade": "grade",
    "score": "score",
    "kind": "kind",
    "memory": text_cell("label", 160),
}


def stale(
    project: Project = None,
    scope: Scope = None,
    limit: Limit = 50,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Memories that may no longer be true, and the commits that say so.

    Example: [bold]reverie stale --project shop[/]
    """
    client = create_client(home, sets, project)
    query = {"project": None if scope else client.project, "scope": scope}
    items = client.list_items("/v1/stale", query, limit)
    print_result(items, json, "\n\n".join(map(_format_stale, items)) or EMPTY_MESSAGE)


def _format_stale(item: JsonObject) -> str:
    memory = item["memory"]
    head = f"{memory['short_id']}  {item['grade']} {item['score']:.2f}  {memory['kind']}"
    lines = [head, f"  {one_line(memory['content'], 200)}"]
    lines += [
        (
            f"  {evidence['commit'][:9]} {evidence['change']} {evidence['path']}: "
            f"{one_line(evidence['subject'], 80)}"
        )
        for evidence in item["evidence"]
    ]
    return "\n".join(lines)


def stats(
    project: Project = None,
    scope: Scope = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """The graph in numbers: memories, edges, components.

    Without a project or a scope, of all that the key may read.

    Example: [bold]reverie stats --project shop[/]
    """
    query = {"project": project, "scope": scope}
    response = create_client(home, sets, project).request("GET", "/v1/graph/stats", query)
    print_result(response, json, "\n".join(_format_stats(response)))


def _format_stats(document: JsonObject) -> Iterator[str]:
    yield f"memories    {document['memories']:,} ({_format_counts(document['nodes_by_kind'])})"
    yield f"status      {_format_counts(document['nodes_by_status'])}"
    yield f"edges       {document['edges']:,} ({_format_counts(document['edges_by_type'])})"
    orphans = f"{document['orphans']:,} nodes have no edge"
    largest = f"the largest of {document['largest_component']:,}"
    yield f"components  {document['components']:,}, {largest}; {orphans}"


def _format_counts(numbers: JsonObject) -> str:
    by_count = sorted(numbers.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count:,} {name}" for name, count in by_count) or "none"
