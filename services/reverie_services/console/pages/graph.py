"""The page of the graph around a memory, a file or an entity."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from reverie.domain.core.kinds import EdgeKind, Kind
from reverie.mcp.rest_calls import RestCallError
from reverie_services.console.page_request import PageRequest, PageValues, memory_path
from reverie_services.console.pages.registry import PAGES

MAX_NODES = 300
MAX_TEXTS = 20
"""Memories about a file whose texts are shown; of the others, the names."""
MAX_NAME = 190
"""The longest name that a node can have."""
_Body = Mapping[str, Any]


@PAGES.add("graph", "graph.html", "Graph")
async def show_graph(request: PageRequest) -> PageValues:
    """The neighbourhood of `from`: an id of a memory, a path of a file, or an entity's name."""
    start = request.ask("from")
    values: PageValues = {
        "start": start,
        "graph": None,
        "about": [],
        "kinds": [kind.value for kind in Kind],
        "types": [kind.value for kind in EdgeKind],
        "kind": request.query.getall("kind", []),
        "type": request.query.getall("type", []),
    }
    if start is None:
        return values
    root, impact_parameter = await _find_root(request, start)
    if root is None:
        # Nothing is known by this id or name: an answer, not an error.
        return values | {"graph": {"nodes": [], "edges": []}}
    graph = await request.get(
        f"{memory_path(root)}/subgraph",
        depth=request.number("depth", 2, 5) or 1,
        limit=request.number("limit", 150, MAX_NODES) or 1,
        as_of=request.ask("as_of"),
    )
    return values | {
        "graph": _filter_graph(graph, values["kind"], values["type"]),
        "about": await _list_about(request, impact_parameter, start) if impact_parameter else [],
    }


async def _list_about(request: PageRequest, parameter: str, start: str) -> Sequence[_Body]:
    """The texts of the memories about a file or an entity; nodes of the graph only have names."""
    found = await request.try_get("/v1/impact", limit=50, **{parameter: start})
    items: Sequence[_Body] = (found or {}).get("items", [])
    texts = await asyncio.gather(
        *(request.try_get(memory_path(item["id"])) for item in items[:MAX_TEXTS])
    )
    shown = {text["id"]: text["summary"] or text["content"] for text in texts if text}
    return [{**item, "label": shown.get(item["id"], item["label"])} for item in items]


async def _find_root(request: PageRequest, start: str) -> tuple[str | None, str | None]:
    """The id of the root, and the parameter of `GET /v1/impact` for a file or an entity."""
    if " " not in start and "/" not in start:
        try:
            memory = await request.get(memory_path(start))
        except RestCallError as error:
            if error.problem.status not in {400, 404, 422}:
                raise
        else:
            return memory["id"], None
    if len(start) > MAX_NAME:
        return None, None
    # Reverie keeps files and entities as nodes with such keys.
    for kind, parameter in (("file", "path"), ("entity", "entity")):
        page = await request.get("/v1/memories", kind=kind, key=f"{kind}:{start}", limit=1)
        if page["items"]:
            return page["items"][0]["id"], parameter
    return None, None


def _filter_graph(graph: _Body, kinds: Sequence[str], types: Sequence[str]) -> _Body:
    """The nodes of these kinds, the root always, and the edges of these types among them."""
    nodes = [
        node
        for node in graph["nodes"]
        if not kinds or node["kind"] in kinds or node["id"] == graph["root"]
    ]
    ids = {node["id"] for node in nodes}
    edges = [
        edge
        for edge in graph["edges"]
        if (not types or edge["type"] in types) and {edge["from"], edge["to"]} <= ids
    ]
    return {**graph, "nodes": nodes, "edges": edges}
