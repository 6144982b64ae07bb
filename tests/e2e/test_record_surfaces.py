"""A decision record reads the same in the terminal, over MCP, in the client, and after a move."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from reverie.client import AsyncReverie
from reverie.domain.core.ids import short_id
from tests.e2e.test_decisions_recalled import UPLOADS, hand_over, list_records
from tests.support.commands import command
from tests.support.mcp_clients import over_http
from tests.support.stack import Stack

QUESTION = "Which size may a video upload have at the proxy?"
UNRELATED = "How do I bake sourdough bread?"


@pytest.fixture(name="record")
async def _record(stack: Stack) -> dict[str, Any]:
    await hand_over(stack, "surfaces", UPLOADS)
    [record] = await list_records(stack, "surfaces")
    return dict(record)


async def run_command(stack: Stack, home: Path, *words: str) -> tuple[str, str]:
    env = {"REVERIE_API_KEY": stack.key, "REVERIE_GATEWAY_URL": stack.url, "COLUMNS": "200"}
    code, out, warnings = await command(env | {"REVERIE_HOME": str(home)}, *words)
    assert code == 0, out + warnings
    return out, warnings


async def test_a_record_is_lines_in_the_terminal_and_over_mcp_and_one_line_in_the_context(
    stack: Stack, record: dict[str, Any], tmp_path: Path
) -> None:
    lines = record["content"].splitlines()
    assert lines[0] == "Uploads of large videos fail at the proxy with a 413."
    assert record["metadata"]["record"]["problem"] == f"{lines[0]} Can you fix upload_limits?"
    assert any(line.startswith("Decided: ") for line in lines)
    shown, _ = await run_command(stack, tmp_path, "show", short_id(UUID(record["id"])))
    assert shown.splitlines()[: len(lines)] == lines
    async with over_http(f"{stack.url}/mcp", stack.key) as client:
        arguments = {"operation": "get_memory", "arguments": {"id": record["id"]}}
        result = await client.call_tool("more", arguments)
        assert result.structured_content is not None
        assert result.structured_content["metadata"]["record"] == record["metadata"]["record"]
        for line in lines:
            assert line in result.structured_content["content"]
    context = await stack.get("/v1/context?project=surfaces")
    [line] = [line for line in context["markdown"].splitlines() if record["id"][-8:] in line]
    _, _, text = line.partition("] ")
    text, _, age = text.rpartition(" (")
    assert age in {"just now)", "a minute ago)"}
    assert text == " ".join(record["content"].split())


async def test_the_terminal_and_the_client_say_how_surely_a_question_is_answered(
    stack: Stack, record: dict[str, Any], tmp_path: Path
) -> None:
    place = ("--scope", "project/surfaces")
    out, warnings = await run_command(stack, tmp_path, "recall", QUESTION, *place)
    assert "relevance" in out.splitlines()[0]
    assert "no memory answers this" not in warnings
    out, warnings = await run_command(stack, tmp_path, "recall", UNRELATED, *place)
    assert "no memory answers this for sure: the nearest ones are listed" in warnings
    async with AsyncReverie(stack.url, stack.key) as reverie:
        found = await reverie.recall(QUESTION, scopes=["project/surfaces"])
        assert found.answered
        assert found.relevance == max(hit.relevance or 0.0 for hit in found.memories)
        assert found.relevance is not None
        assert found.relevance >= 0.6
        assert record["id"] in {str(hit.id) for hit in found.memories}
        unrelated = await reverie.recall(UNRELATED, scopes=["project/surfaces"])
        assert not unrelated.answered
        assert unrelated.memories
        assert await reverie.recall_as_text(UNRELATED, scopes=["project/surfaces"]) == ""
        text = await reverie.recall_as_text(QUESTION, scopes=["project/surfaces"])
        assert "Decided: " in text
