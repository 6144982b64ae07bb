"""Tools for notes under keys: other names for remember and recall."""

from __future__ import annotations

from reverie.contracts.memories.memories import MemoryPage, RememberRequest, RememberResponse
from reverie.contracts.recall import RecallRequest
from reverie.mcp import composite_tools
from reverie.mcp.tool_definition import ADDITIVE, RestCall, Tool
from reverie.mcp.tool_schemas import (
    arguments_schema,
    field_schema,
    integer_schema,
    result_schema,
    string_schema,
)

_TOOLS = (
    Tool(
        "memory_save",
        "Keep a note under a key of your own. Another text for that key needs supersede_reason.",
        arguments_schema(
            {
                "key": field_schema(RememberRequest, "key"),
                "content": field_schema(RememberRequest, "content"),
                "type": string_schema("default context"),
                "supersede_reason": field_schema(RememberRequest, "supersede_reason"),
            },
            "key",
            "content",
        ),
        result_schema(RememberResponse, "id", "status"),
        RestCall("POST", "/v1/remember", renames={"type": "kind"}, defaults={"kind": "context"}),
        ADDITIVE,
        project_argument="scope",
    ),
    Tool(
        "memory_search",
        "Like recall, but short fragments with keys, to look up notes.",
        arguments_schema(
            {"query": field_schema(RecallRequest, "query"), "max_results": integer_schema()},
            "query",
        ),
        {
            "type": "object",
            "properties": {"results": {"type": "array"}},
        },
        composite_tools.search_notes,
        project_argument="project",
        returns_memories=True,
    ),
    Tool(
        "memory_list",
        "List active memories, newest first. To find something, use recall.",
        arguments_schema(
            {
                "type": string_schema(),
                "scope": string_schema(),
                "cursor": string_schema("from next"),
            }
        ),
        result_schema(MemoryPage, "items"),
        RestCall(
            "GET",
            "/v1/memories",
            renames={"type": "kind"},
            defaults={"status": "active", "limit": 20},
        ),
        project_argument="scope",
        returns_memories=True,
    ),
)
NOTE_TOOLS = {tool.name: tool for tool in _TOOLS}
"""The tools by their names."""
