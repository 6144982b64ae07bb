"""`reverie link`, `unlink`, `subgraph`, `impact` and `stale`: the graph, and what is in doubt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.asking import MOST_SHOWN, Desk, desk, part
from reverie.cli.common import Home, Json, Sets
from reverie.cli.options import Depth, Id, Limit, Project, Scope
from reverie.cli.shown import NOTHING, Document, clipped, line_of, short, short_of, table, tell
from reverie.cli.shown import warn as warned
from reverie.domain.errors import Invalid

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
    at = desk(home, sets)
    ends = {"from": at.memory(source), "to": at.memory(target)}
    done = at.ask("POST", "/v1/links", body={**ends, "type": type, "weight": weight})
    said = "linked" if done["created"] else "was linked before"
    tell(done, json, f"{said}: {short(ends['from'])} {type} {short(ends['to'])} ({done['id']})")


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
    at = desk(home, sets)
    id = edge if other is None else _between(at, edge, other, type)
    done = at.ask("DELETE", f"/v1/links/{part(id)}")
    tell(done, json, f"the edge {done['id']} is gone")


def _between(at: Desk, one: str, other: str, type: str | None) -> str:
    """The one edge between two memories. Raises `Invalid` where there is none, or several."""
    ends = {at.memory(one), at.memory(other)}
    near = at.ask("GET", f"/v1/memories/{part(one)}/subgraph", {"depth": 1, "fan_out": 50})
    found = [
        edge
        for edge in near["edges"]
        if edge["id"] and {edge["from"], edge["to"]} == ends and type in {None, edge["type"]}
    ]
    if not found:
        raise Invalid("edge", f"none joins {short(one)} and {short(other)}")
    if len(found) > 1:
        types = ", ".join(edge["type"] for edge in found)
        raise Invalid("--type", f"there are several edges ({types}): say which")
    return str(found[0]["id"])


def subgraph(
    id: Id, depth: Depth = 2, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """What lies around a memory: why it came to be, what depends on it.

    Example: [bold]reverie subgraph 3fa9c1d2 --depth 1[/]
    """
    found = desk(home, sets).ask("GET", f"/v1/memories/{part(id)}/subgraph", {"depth": depth})
    if found["truncated"]:
        warned([f"not all is shown: cut by {', '.join(found['cut_by'])}"])
    tell(found, json, _tree(found))


def _tree(found: Document) -> Tree:
    """The walk from the root; each memory hangs where it was reached first."""
    from rich.text import Text
    from rich.tree import Tree

    nodes = {node["id"]: node for node in found["nodes"]}
    top = Tree(Text(_named(nodes[found["root"]])))
    hung = {found["root"]: top}
    for node in sorted(found["nodes"], key=lambda one: one["depth"]):
        for edge, near in _edges_at(found["edges"], node["id"]):
            if near in nodes and near not in hung and node["id"] in hung:
                arrow = "->" if edge["from"] == node["id"] else "<-"
                text = Text(f"{arrow} {edge['type']}  {_named(nodes[near])}", overflow="fold")
                hung[near] = hung[node["id"]].add(text)
    return top


def _edges_at(edges: Sequence[Document], node: str) -> Iterator[tuple[Document, str]]:
    for edge in edges:
        if edge["from"] == node:
            yield edge, edge["to"]
        elif edge["to"] == node:
            yield edge, edge["from"]


def _named(node: Document) -> str:
    status = "" if node["status"] == "active" else f" [{node['status']}]"
    return f"{node['short_id']} {node['kind']}{status}: {line_of(node['label'], 90)}"


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
    at = desk(home, sets, project)
    if path is None and entity is None:
        raise Invalid("path", "name a file, or an --entity")
    asked = {"path": path, "entity": entity, "project": at.project}
    found = at.ask("GET", "/v1/impact", {**asked, "limit": min(limit, MOST_SHOWN)})
    while found["next"] and len(found["items"]) < limit:
        more = at.ask("GET", "/v1/impact", {**asked, "limit": MOST_SHOWN, "cursor": found["next"]})
        found |= {"items": [*found["items"], *more["items"]][:limit], "next": more["next"]}
    tell(found, json, table(found["items"], _IMPACT))


_IMPACT: dict[str, Any] = {
    "id": short_of("id"),
    "grade": "grade",
    "score": "score",
    "kind": "kind",
    "memory": clipped("label", 160),
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
    at = desk(home, sets, project)
    query = {"project": None if scope else at.project, "scope": scope}
    found = at.pages("/v1/stale", query, limit)
    tell(found, json, "\n\n".join(map(_doubted, found)) or NOTHING)


def _doubted(item: Document) -> str:
    memory = item["memory"]
    head = f"{memory['short_id']}  {item['grade']} {item['score']:.2f}  {memory['kind']}"
    lines = [head, f"  {line_of(memory['content'], 200)}"]
    lines += [
        f"  {one['commit'][:9]} {one['change']} {one['path']}: {line_of(one['subject'], 80)}"
        for one in item["evidence"]
    ]
    return "\n".join(lines)
