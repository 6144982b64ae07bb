"""The list of MCP tools is small and describes every tool."""

from __future__ import annotations

import json

import pytest

from reverie.inference.token_counters import ModelTokenCounter
from reverie.mcp.handlers import McpHandlers
from reverie.mcp.rest_calls import RestClient
from reverie.mcp.tools import MINIMAL_TOOLS, TOOLS
from reverie.testing.models import model_home
from tests.interfaces.table import CASES

SEEDS = {
    *("recall", "remember", "context", "forget", "link", "unlink", "subgraph", "impact", "status"),
    *("task_update", "sessions", "stale", "history", "rollback", "confirm", "feedback", "dream"),
}
MORE = {"more"}
"""The tool for every operation that has none of its own."""
MOST_TOKENS = 4000
DESTRUCTIVE = {"forget", "unlink", "feedback", "more"}


def _nowhere(_: object) -> RestClient:
    raise AssertionError("a list makes no call")


async def listed(profile: str) -> list[dict[str, object]]:
    """The tools of a profile as they go over the wire."""
    found = await McpHandlers(_nowhere, profile).list_tools(None)  # type: ignore[arg-type]
    dumped = [tool.model_dump(by_alias=True, exclude_none=True) for tool in found.tools]
    return [dict(one) for one in dumped]


@pytest.mark.parametrize(("profile", "most"), [("full", MOST_TOKENS), ("minimal", 1300)])
async def test_the_tool_list_is_small(profile: str, most: int) -> None:
    counter = ModelTokenCounter(model_home() / "models" / "bge-small-en-v1.5")
    wire = json.dumps(await listed(profile), separators=(",", ":"))
    tokens = counter.count(wire)
    print(f"{profile}: {len(await listed(profile))} tools, {tokens} tokens, {len(wire)} characters")
    assert tokens < most


async def test_every_tool_describes_its_purpose_its_arguments_and_whether_it_changes_anything() -> (
    None
):
    tools = {str(one["name"]): one for one in await listed("full")}
    assert tools.keys() == SEEDS | MORE
    assert {one["name"] for one in await listed("minimal")} == set(MINIMAL_TOOLS)
    assert len(MINIMAL_TOOLS) == 5
    for name, tool in tools.items():
        assert len(str(tool["description"]).split()) >= 5, name
        for side in ("inputSchema", "outputSchema"):
            schema = tool[side]
            assert isinstance(schema, dict)
            assert schema["type"] == "object", name
        assert tool["annotations"], name
    destructive = {tool.name for tool in TOOLS if tool.hints.destructive}
    assert destructive == DESTRUCTIVE
    assert {tool.name for tool in TOOLS if tool.hints.read_only} == {
        *("recall", "context", "subgraph", "impact", "status", "sessions", "stale", "history"),
    }


def test_every_tool_is_tried_among_the_interfaces() -> None:
    assert {case.tool for case in CASES} == {tool.name for tool in TOOLS}
