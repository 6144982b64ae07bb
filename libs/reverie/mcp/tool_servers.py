"""Other MCP servers as sources of tools: connects to one, lists its tools and calls them."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import httpx2
import truststore
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent, Tool
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from reverie.domain.core.errors import Misconfigured

MAX_TOOLS = 64
"""Tools of one server that are offered; the rest is left out."""
MAX_DESCRIPTION = 1024
MAX_SCHEMA = 20_000
MAX_RESULT = 1024 * 1024
_MAX_PAGES = 10
_CLOSE_SECONDS = 10.0

T = TypeVar("T")


class ToolServerError(ValueError):
    """A server that is not there, does not answer, or answers what it must not."""


class ToolServer(BaseModel):
    """A server of the operator: a command, or an address.

    `env`: what the command gets beside PATH, HOME and the like. `headers` go with each request;
    `vault` names for a header the entry of the vault that holds it. `tools`: those that are
    offered; null offers all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: list[str] | None = Field(default=None, min_length=1)
    env: dict[str, str] = {}
    url: str | None = Field(default=None, pattern=r"^https?://")
    headers: dict[str, str] = {}
    vault: dict[str, str] = {}
    tools: list[str] | None = None
    timeout: float = Field(default=30.0, gt=0)

    @model_validator(mode="after")
    def _check_place(self) -> ToolServer:
        if (self.command is None) == (self.url is None):
            raise ValueError("needs either a command or a url")
        return self


_ServerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,30}$")]
_SERVERS = TypeAdapter(dict[_ServerName, ToolServer])


def parse_tool_servers(text: str | None) -> dict[str, ToolServer]:
    """The servers of the setting `engine_mcp_servers`, by name. Raises `Misconfigured`."""
    try:
        return _SERVERS.validate_json(text) if text else {}
    except ValidationError:
        # The reason would quote the headers.
        reason = 'must be JSON as {"docs": {"url": "https://..."}} or {"git": {"command": ["..."]}}'
        raise Misconfigured("engine_mcp_servers", reason) from None


@dataclass(frozen=True)
class ServerTool:
    """A tool of a server. What does not say that it only reads counts as changing."""

    name: str
    description: str
    schema: dict[str, Any]
    changes: bool


@asynccontextmanager
async def connect_tool_server(
    server: ToolServer, headers: Mapping[str, str]
) -> AsyncIterator[ServerConnection]:
    """Connects to a server. `headers` are added to its own. Raises `ToolServerError`."""
    connection = ServerConnection(server, {**server.headers, **headers})
    try:
        await connection.open()
        yield connection
    finally:
        await connection.close()


class ServerConnection:
    """A connection that a task of its own holds: whatever breaks it breaks that task alone."""

    def __init__(self, server: ToolServer, headers: Mapping[str, str]) -> None:
        self._server, self._headers = server, dict(headers)
        self._over = asyncio.Event()
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._holder = asyncio.create_task(self._run_connection())

    async def open(self) -> None:
        """Waits until the server is there. Raises `ToolServerError`."""
        await self._run(asyncio.shield(self._client))

    async def list_tools(self) -> list[ServerTool]:
        """The tools that may be offered. Raises `ToolServerError`."""
        client = self._client.result()
        found: list[Tool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self._run(client.list_tools(cursor=cursor))
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        wanted = self._server.tools
        chosen = [tool for tool in found if wanted is None or tool.name in wanted]
        return [_describe(tool) for tool in chosen if is_plain_schema(tool.input_schema)][
            :MAX_TOOLS
        ]

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """What a tool answers, as text. Raises `ToolServerError`."""
        result = await self._run(self._client.result().call_tool(tool, arguments))
        parts = [
            part.text if isinstance(part, TextContent) else f"[{part.type}]"
            for part in result.content
        ]
        text = "\n".join(parts)[:MAX_RESULT]
        if not text and result.structured_content is not None:
            text = json.dumps(result.structured_content, ensure_ascii=False)[:MAX_RESULT]
        if result.is_error:
            raise ToolServerError(text or "the tool failed")
        return text or "(it answered nothing)"

    async def close(self) -> None:
        """Ends the connection, and the process of a command."""
        self._over.set()
        await asyncio.wait({self._holder}, timeout=_CLOSE_SECONDS)
        self._client.cancel()
        if not self._holder.done():
            self._holder.cancel()
        elif not self._holder.cancelled():
            self._holder.exception()  # It was told where it was met.

    async def _run_connection(self) -> None:
        async with AsyncExitStack() as held:
            transport = await self._open_transport(held)
            client = await held.enter_async_context(Client(transport, cache=None))
            self._client.set_result(client)
            await self._over.wait()

    async def _open_transport(self, held: AsyncExitStack) -> Any:
        server = self._server
        if server.url is not None:
            http = httpx2.AsyncClient(
                headers=self._headers,
                timeout=server.timeout,
                verify=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            )
            await held.enter_async_context(http)
            return streamable_http_client(server.url, http_client=http)
        program, *arguments = server.command or [""]
        # It gets what the setting gives, and not the environment of the engine with its keys.
        parameters = StdioServerParameters(command=program, args=arguments, env=server.env)
        nowhere = held.enter_context(os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        return stdio_client(parameters, nowhere)

    def _describe_silence(self) -> str:
        if not self._holder.done():
            return "it does not answer"
        error = None if self._holder.cancelled() else self._holder.exception()
        return f"it is gone: {error}"[:500] if error else "it is gone"

    async def _run(self, call: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
        """What a call gives, within the server's time and while the connection is held."""
        task = asyncio.ensure_future(call)
        try:
            await asyncio.wait(
                {task, self._holder},
                timeout=self._server.timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not task.done():
                raise ToolServerError(self._describe_silence())
            return task.result()
        except ToolServerError:
            raise
        except Exception as error:
            raise ToolServerError(f"it does not work: {error}"[:500]) from error
        finally:
            task.cancel()


def _describe(tool: Tool) -> ServerTool:
    is_read = tool.annotations is not None and tool.annotations.read_only_hint is True
    description = (tool.description or tool.name)[:MAX_DESCRIPTION]
    return ServerTool(tool.name, description, tool.input_schema, changes=not is_read)


def is_plain_schema(schema: Any) -> bool:
    """Whether a schema can be given to a model: an object of bounded size, closed in itself."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return False
    if len(json.dumps(schema)) > MAX_SCHEMA:
        return False
    definitions = schema.get("$defs", {})
    is_object = isinstance(schema.get("properties", {}), dict) and isinstance(definitions, dict)
    return is_object and _is_closed(schema, {f"#/$defs/{name}" for name in definitions})


def _is_closed(value: Any, definitions: set[str]) -> bool:
    if isinstance(value, list):
        return all(_is_closed(item, definitions) for item in value)
    if not isinstance(value, dict):
        return True
    reference = value.get("$ref")
    return (not isinstance(reference, str) or reference in definitions) and all(
        _is_closed(item, definitions) for item in value.values()
    )
