"""The resources that a client may attach: context, graph statistics, stale memories, a memory."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from reverie.contracts.problems import problem_from_error
from reverie.domain.core.errors import NotFound
from reverie.mcp.rest_calls import RestCallError, RestClient, call_rest
from reverie.mcp.tool_results import compact, fence_body, to_json

MARKDOWN, JSON = "text/markdown", "application/json"
MEMORY_URI_PREFIX = "reverie://memory/"


@dataclass(frozen=True)
class McpResource:
    """A resource: its URI, its description for people, and the REST path that it is read from."""

    uri: str
    name: str
    description: str
    media_type: str
    path: str = ""


RESOURCES = (
    McpResource(
        "reverie://context",
        "context",
        "What to know before starting: conventions, tasks, decisions, what may be stale",
        MARKDOWN,
        "/v1/context",
    ),
    McpResource(
        "reverie://graph/stats",
        "graph",
        "Count memories, edges and components",
        JSON,
        "/v1/graph/stats",
    ),
    McpResource(
        "reverie://stale", "stale", "Memories that commits made doubtful", JSON, "/v1/stale"
    ),
)
MEMORY_TEMPLATE = McpResource(
    f"{MEMORY_URI_PREFIX}{{id}}",
    "memory",
    "A memory with its neighbours; the id may be short",
    JSON,
)


async def read_resource(rest: RestClient, uri: str, project: str | None) -> tuple[str, str]:
    """The media type and the text of a resource. Raises `RestCallError`."""
    if uri.startswith(MEMORY_URI_PREFIX):
        memory_id = unquote(uri.removeprefix(MEMORY_URI_PREFIX))
        memory = await call_rest(rest, "GET", f"/v1/memories/{quote(memory_id, safe='')}")
        return JSON, to_json(fence_body(compact(memory)))
    resource = next((candidate for candidate in RESOURCES if candidate.uri == uri), None)
    if resource is None:
        raise RestCallError(problem_from_error(NotFound("resource", uri)))
    body = await call_rest(rest, "GET", resource.path, {"project": project} if project else None)
    if resource.media_type == MARKDOWN:
        return MARKDOWN, str(body["markdown"])
    compact_body = compact(body)
    return JSON, to_json(fence_body(compact_body) if resource.name == "stale" else compact_body)
