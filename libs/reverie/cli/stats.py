"""`reverie stats`: the graph in numbers."""

from __future__ import annotations

from collections.abc import Iterator

from reverie.cli.asking import desk
from reverie.cli.common import Home, Json, Sets
from reverie.cli.options import Project, Scope
from reverie.cli.shown import Document, tell


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
    found = desk(home, sets, project).ask("GET", "/v1/graph/stats", query)
    tell(found, json, "\n".join(_lines(found)))


def _lines(found: Document) -> Iterator[str]:
    yield f"memories    {found['memories']:,} ({_counted(found['nodes_by_kind'])})"
    yield f"status      {_counted(found['nodes_by_status'])}"
    yield f"edges       {found['edges']:,} ({_counted(found['edges_by_type'])})"
    alone = f"{found['orphans']:,} nodes have no edge"
    largest = f"the largest of {found['largest_component']:,}"
    yield f"components  {found['components']:,}, {largest}; {alone}"


def _counted(numbers: Document) -> str:
    most_first = sorted(numbers.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{count:,} {name}" for name, count in most_first) or "none"
