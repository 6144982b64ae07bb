"""What a client may attach by itself: context, graph in numbers, what is stale, a memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from reverie.contracts.problems import problem_of
from reverie.domain.errors import NotFound
from reverie.mcp.answers import dumped, fenced, short
from reverie.mcp.rest import Failed, Rest, ask

MARKDOWN, JSON = "text/markdown", "application/json"
MEMORY = "reverie://memory/"


@dataclass(frozen=True)
class Source:
    """A resource: where it is read, and what a person is told of it."""

    uri: str
    name: str
    about: str
    kind: str
    path: str
    by_project: bool = True


SOURCES = (
    Source(
        "reverie://context",
        "context",
        "What to know before starting: conventions, tasks, decisions, what may be stale",
        MARKDOWN,
        "/v1/context",
    ),
    Source("reverie://graph/stats", "graph", "The graph in numbers", JSON, "/v1/graph/stats"),
    Source("reverie://stale", "stale", "Memories that commits made doubtful", JSON, "/v1/stale"),
)
TEMPLATE = Source(
    f"{MEMORY}{{id}}", "memory", "A memory with its neighbours; the id may be short", JSON, ""
)


async def read(rest: Rest, uri: str, project: str | None) -> tuple[str, str]:
    """The media type and the text of a resource. Raises `Failed`."""
    if uri.startswith(MEMORY):
        name = unquote(uri.removeprefix(MEMORY))
        found = await ask(rest, "GET", f"/v1/memories/{quote(name, safe='')}")
        return JSON, dumped(fenced(short(found)))
    source = next((one for one in SOURCES if one.uri == uri), None)
    if source is None:
        raise Failed(problem_of(NotFound("resource", uri)))
    body = await ask(rest, "GET", source.path, {"project": project} if project else None)
    if source.kind == MARKDOWN:
        return MARKDOWN, str(body["markdown"])
    return JSON, dumped(_told(source, body))


def _told(source: Source, body: dict[str, Any]) -> Any:
    return fenced(short(body)) if source.name == "stale" else short(body)
