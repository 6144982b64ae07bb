"""Serves MCP on standard input and output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.mcp.handlers import McpHandlers

_STUBBED_PACKAGES = ("mcp", "mcp.server")


async def serve_stdio(create_handlers: Callable[[], McpHandlers]) -> None:
    """Answers until standard input ends; `create_handlers` makes the door when it is first needed.

    It is for a process of its own: the SDK's clients and its framework are not loaded there.
    """
    _stub_packages()
    from mcp.server.stdio import stdio_server

    from reverie.mcp.server import build_server

    server = build_server(create_handlers)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


def _stub_packages() -> None:
    """Puts the SDK's packages in place without running what they import by the way.

    That is a sixth of the processor time until the first answer, for which an agent waits.
    """
    for name in _STUBBED_PACKAGES:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            sys.modules[name] = module_from_spec(spec)
