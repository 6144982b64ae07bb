"""Opens sessions of the official MCP client over HTTP and over stdio."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

COMMAND = ["-P", "-m", "reverie.cli.app.main", "mcp"]


@asynccontextmanager
async def over_http(
    url: str, key: str, mode: str = "auto", headers: Mapping[str, str] | None = None
) -> AsyncIterator[Client]:
    """Connected to the gateway. `mode`: `legacy` for the handshake of earlier versions."""
    sent = {"Authorization": f"Bearer {key}", **(headers or {})}
    async with (
        httpx2.AsyncClient(headers=sent, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(
    home: Path, *flags: str, mode: str = "auto", **env: str
) -> AsyncIterator[Client]:
    """Connected to a `reverie mcp` of its own, on a home folder."""
    server = StdioServerParameters(
        command=sys.executable,
        args=[*COMMAND, "--home", str(home), *flags],
        env={"PYTHONPATH": ":".join(path for path in sys.path if path), **env},
        cwd=home,
    )
    log = (home / "mcp.err").open("w")
    with log:
        async with Client(stdio_client(server, log), mode=mode) as client:
            yield client


async def call(client: Client, tool: str, /, **arguments: Any) -> Any:
    """The structured answer of a tool that must succeed."""
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert not result.is_error, said(result)
    return result.structured_content


async def refused(client: Client, tool: str, /, **arguments: Any) -> tuple[str, Any]:
    """The words and the document of a tool that must fail."""
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert result.is_error, json.dumps(result.structured_content)
    return said(result), result.structured_content


def said(result: CallToolResult) -> str:
    """The text of an answer."""
    return "\n".join(one.text for one in result.content if isinstance(one, TextContent))
