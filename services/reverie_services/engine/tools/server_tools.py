"""Tools of the operator's MCP servers, as a toolset of a turn.

Each turn has connections of its own, so no server carries state from tenant to tenant.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from reverie.client.async_client import AsyncReverie
from reverie.domain.core.errors import ReverieError
from reverie.mcp.tool_servers import (
    ServerConnection,
    ServerTool,
    ToolServer,
    ToolServerError,
    connect_tool_server,
)
from reverie_services.engine.events import TurnEmitter
from reverie_services.engine.tools.toolset import TOOLS
from reverie_services.engine.turn_state import Ctx, TurnState

_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME = 64
_ARGUMENTS = SchemaValidator(
    core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())
)


@dataclass
class ServerToolset(AbstractToolset[TurnState]):
    """The tools of one server, with its name as a prefix."""

    server: str
    connection: ServerConnection
    tools: Mapping[str, ServerTool]

    @property
    def id(self) -> str:
        return self.server

    async def get_tools(self, ctx: Ctx) -> dict[str, ToolsetTool[TurnState]]:
        return {name: self._define(name, tool) for name, tool in self.tools.items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: Ctx, tool: ToolsetTool[TurnState]
    ) -> Any:
        """Raises `ToolServerError`, which becomes the result that the model reads."""
        return await self.connection.call(self.tools[name].name, tool_args)

    def _define(self, name: str, tool: ServerTool) -> ToolsetTool[TurnState]:
        definition = ToolDefinition(
            name=name,
            description=tool.description,
            parameters_json_schema=tool.schema,
            metadata={"changes": tool.changes, "server": self.server},
            sequential=tool.changes,
        )
        return ToolsetTool(
            toolset=self, tool_def=definition, max_retries=2, args_validator=_ARGUMENTS
        )


def name_tools(server: str, tools: Collection[ServerTool]) -> dict[str, ServerTool]:
    """The tools by names that every provider accepts; the first of two equal ones."""
    named: dict[str, ServerTool] = {}
    for tool in tools:
        named.setdefault(_NO_NAME.sub("_", f"{server}_{tool.name}")[:_MAX_NAME], tool)
    return {name: tool for name, tool in named.items() if name not in TOOLS}


@asynccontextmanager
async def open_server_tools(
    servers: Mapping[str, ToolServer],
    names: Collection[str],
    reverie: AsyncReverie,
    emitter: TurnEmitter,
) -> AsyncIterator[list[ServerToolset]]:
    """Connects to the named servers. A failure is reported as a notice, and the turn goes on."""
    async with AsyncExitStack() as held:
        toolsets: list[ServerToolset] = []
        for name in names:
            try:
                if name not in servers:
                    raise ToolServerError("no setting names it")
                server = servers[name]
                headers = {
                    header: str((await reverie.vault_get(entry)).value)
                    for header, entry in server.vault.items()
                }
                connection = await held.enter_async_context(connect_tool_server(server, headers))
                tools = name_tools(name, await connection.list_tools())
            except (ReverieError, ToolServerError) as error:
                why = emitter.redactor.redact(str(error)).text
                emitter.emit("notice", {"what": "server_unavailable", "server": name, "why": why})
                continue
            toolsets.append(ServerToolset(name, connection, tools))
        yield toolsets
