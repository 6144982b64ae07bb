"""The project and session of an MCP call that names neither."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from reverie.testing.servers import TestRun
from tests.support.mcp_clients import call, over_http, over_stdio
from tests.support.stack import Stack


async def handed_over(client: Client, **given: str) -> str:
    """The prompt of a hand-over."""
    [message] = (await client.get_prompt("session_handoff", given)).messages
    assert isinstance(message.content, TextContent)
    return message.content.text


async def test_a_dream_without_a_scope_uses_the_project(stack: Stack) -> None:
    start: dict[str, Any] = {"agent": "ann", "project": "mill", "branch": "feat/wheel"}
    session = await stack.post("/v1/sessions/start", start)
    async with over_http(f"{stack.url}/mcp?project=mill", stack.key) as client:
        assert (await call(client, "dream"))["scope"] == "project/mill"
        asked = await call(client, "dream", session=session["session"])
        assert asked["scope"] == session["scope"]
        assert (await call(client, "dream", scope="global"))["scope"] == "global"


async def test_a_handover_names_its_session_and_shows_no_tasks_of_other_projects(
    stack: Stack,
) -> None:
    start = {"agent": "ann", "project": "mill", "branch": "main", "external_id": "monday"}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    await stack.post("/v1/sessions/start", {"agent": "ann", "project": "quay"})
    for text, project in (("Oil the wheel", "mill"), ("Wash the gulls", "quay")):
        task = {"content": text, "kind": "task", "scope": f"project/{project}"}
        await stack.post("/v1/remember", task)
    done = {"content": "Cut the reeds", "kind": "task", "scope": "project/mill"}
    gone = (await stack.post("/v1/remember", done))["id"]
    await stack.call("PATCH", f"/v1/tasks/{gone}", {"state": "done"})
    async with over_http(f"{stack.url}/mcp", stack.key) as client:
        for name in (session, session[-8:], "monday"):
            said = await handed_over(client, session=name)
            assert session in said
            assert "Oil the wheel" in said
            assert "Wash the gulls" not in said
            assert "Cut the reeds" not in said
        with pytest.raises(MCPError, match="not_found: no session tuesday"):
            await handed_over(client, session="tuesday")


async def test_the_tools_of_a_folder_use_the_project_of_its_file(
    stack: Stack, test_run: TestRun
) -> None:
    folder = test_run.new_folder("places")
    (folder / "reverie.toml").write_text('project = "quay"\n')
    env = {"REVERIE_GATEWAY_URL": stack.url, "REVERIE_API_KEY": stack.key}
    async with over_stdio(folder, **env) as client:
        made = await call(client, "remember", content="Boats moor by the steps.")
    assert (await stack.get(f"/v1/memories/{made['id']}"))["scope"] == "project/quay"


async def test_more_uses_the_project_as_the_tools_do(stack: Stack) -> None:
    async def scope_of(id: str) -> str:
        return str((await stack.get(f"/v1/memories/{id}"))["scope"])

    async with over_http(f"{stack.url}/mcp?project=mill", stack.key) as client:

        async def more(operation: str, **arguments: Any) -> Any:
            return await call(client, "more", operation=operation, arguments=arguments)

        one = await more("remember", content="The wheel turns at nine.", tier="hot")
        assert await scope_of(one["id"]) == "project/mill"
        items = [
            {"content": "The sluice opens at ten."},
            {"content": "Herons nest by the weir.", "scope": "global"},
        ]
        made = [item["id"] for item in (await more("remember_batch", items=items))["items"]]
        assert [await scope_of(id) for id in made] == ["project/mill", "global"]
        fact: dict[str, Any] = {
            "topic": "grain",
            "statement": "Rye is ground twice.",
            "confidence": "high",
        }
        kept = await more("add_fact", **fact, verified="2026-03-01")
        assert await scope_of(kept["id"]) == "project/mill"
        assert (await more("predict", edited=["wheel.py"]))["files"] == []
        session = await more("session_start", agent="ann", branch="feat/wheel")
        assert session["scope"].startswith("project/mill/feature/")
        told = "The new wheel has oak paddles."
        learned = await call(client, "remember", content=told, session=session["session"])
        assert await scope_of(learned["id"]) == session["scope"]
