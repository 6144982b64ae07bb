"""MCP servers as sources of tools: rights, modes, approvals, and servers that fail."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from reverie.domain.core.errors import Misconfigured
from reverie.mcp.tool_servers import ServerTool, is_plain_schema, parse_tool_servers
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse
from reverie_services.engine.tools.server_tools import name_tools
from tests.engine.conftest import Engine, open_engine
from tests.support.stack import Stack

PROGRAM = Path(__file__).with_name("sample_tool_server.py")


@pytest.fixture
async def equipped(stack: Stack, tmp_path: Path) -> AsyncIterator[Engine]:
    """An engine whose settings name servers: one that works, and two that do not."""
    path = ":".join(part for part in sys.path if part)
    servers: dict[str, Any] = {
        "sample": {
            "command": [sys.executable, str(PROGRAM), str(tmp_path / "notes")],
            "env": {"PYTHONPATH": path},
        },
        "own": {"url": f"{stack.url}/mcp", "vault": {"Authorization": "own_key"}},
        "absent": {"url": "http://127.0.0.1:9/mcp", "timeout": 5},
        "liar": {"command": ["/bin/cat"], "timeout": 1},
    }
    settings = {"engine_mcp_servers": SecretStr(json.dumps(servers))}
    async with open_engine(stack, tmp_path / "agents", **settings) as service:
        yield Engine(stack, service)


def _calling(tool: str, **arguments: Any) -> Any:
    """A model that calls a tool, and then says what came back."""
    return _calling_all(ToolUse(tool, arguments))


def _calling_all(*calls: ToolUse) -> Any:
    """A model that calls several at once, and then says what came back."""

    def script(asked: ChatRequest) -> ChatAnswer:
        if asked.is_after_tool:
            return ChatAnswer("\n".join(asked.results[-len(calls) :]))
        return ChatAnswer(calls=calls)

    return script


async def test_agents_use_the_servers_that_they_are_given(equipped: Engine, tmp_path: Path) -> None:
    await equipped.agent("handy", servers=["sample"], ask=[])
    group = await equipped.group("handy", "beck")
    note = ToolUse("sample_note", {"text": "x"})
    look = ToolUse("sample_look", {"question": "life"})
    equipped.play(_calling_all(note, look, ToolUse("sample_environment", {})))
    assert (await equipped.say(group, "Look."))["handy"]["status"] == "done"
    [answer] = await equipped.answers(group)
    assert "The answer to life" in answer
    assert "hunter2secret" not in answer
    assert "sample_*" in equipped.requests[0].system
    assert (tmp_path / "notes").read_text() == "x"
    assert "PYTHONPATH" in answer
    assert "REVERIE" not in answer
    equipped.play(lambda _: ChatAnswer("ok"))
    await equipped.say(group, "Hello.", mentions=["beck"])
    assert not any(name.startswith("sample") for name in equipped.requests[-1].tools)
    await equipped.say(group, "Plan.", mode="plan")
    offered = {name for name in equipped.requests[-1].tools if name.startswith("sample")}
    assert offered == {"sample_look", "sample_environment", "sample_die", "sample_fail"}
    await equipped.say(group, "Dream.", mode="dream")
    assert not any(name.startswith("sample") for name in equipped.requests[-1].tools)


async def test_the_key_of_a_server_comes_from_the_vault(equipped: Engine) -> None:
    stack = equipped.stack
    await stack.post("/v1/remember", {"content": "The lighthouse is green."})
    await equipped.agent("handy", servers=["own"])
    group = await equipped.group("handy")
    equipped.play(_calling("own_recall", query="which colour has the lighthouse?"))
    await equipped.say(group, "Ask.")
    assert "own_recall" not in equipped.requests[-1].tools
    entry = {"value": f"Bearer {stack.key}", "secret": True}
    assert (await stack.call("PUT", "/v1/vault/own_key", entry)).status < 300
    await equipped.say(group, "Ask again.")
    assert "lighthouse is green" in (await equipped.answers(group))[-1]


async def test_a_server_that_fails_ends_as_a_result_that_the_model_reads(
    equipped: Engine, tmp_path: Path
) -> None:
    await equipped.agent("handy", servers=["absent", "liar", "sample"], ask=["sample_note"])
    group = await equipped.group("handy")
    equipped.play(_calling("sample_die"))
    posted = await equipped.post(group, "Die.")
    seen = await equipped.watch(group, posted["after"])
    lost = {e["data"]["server"] for e in seen if e["data"].get("what") == "server_unavailable"}
    assert lost == {"absent", "liar"}
    assert (await equipped.ended(group, posted))["handy"]["status"] == "done"
    assert "failed: " in (await equipped.answers(group))[0]
    await equipped.agent("handy", servers=["sample"], ask=["sample"])
    equipped.play(_calling("sample_note", text="x"))
    await equipped.post(group, "Note it.")
    await equipped.turn(group, "handy", "waiting")
    assert not (tmp_path / "notes").exists()
    reply = await equipped.call("PUT", "/v1/agents/other", {"servers": ["nobody"]})
    assert reply.status == 422


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"a": {}}', '{"a": {"url": "ftp://x"}}', '{"A b": {"url": "http://x"}}'],
)
def test_a_setting_that_names_no_server_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured, match="engine_mcp_servers"):
        parse_tool_servers(text)


@pytest.mark.parametrize(
    ("schema", "is_plain"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}}, True),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/B"}}}, False),
        ({"type": "string"}, False),
        ({"type": "object", "properties": "many"}, False),
        ({"type": "object", "description": "x" * 30_000}, False),
    ],
)
def test_only_a_schema_that_is_closed_and_small_is_offered(schema: Any, is_plain: bool) -> None:
    assert is_plain_schema(schema) == is_plain


def test_names_of_tools_are_those_that_providers_take() -> None:
    tools = [ServerTool(name, "", {}, True) for name in ("a.b", "a/b", "file", "x" * 80)]
    assert list(name_tools("read", tools)) == ["read_a_b", ("read_" + "x" * 80)[:64]]
