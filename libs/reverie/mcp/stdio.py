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
    """Serves until standard input ends; `create_handlers` runs on the first request that needs it.

    Call it in a process of its own: it keeps the SDK's clients and web framework from being loaded.
    """
    _stub_packages()
    from mcp.server.stdio import stdio_server

    from reverie.mcp.server import build_server

    server = build_server(create_handlers)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


def _stub_packages() -> None:
    """Registers the SDK's packages without running their `__init__` modules.

    Their imports take a sixth of the processor time until the first response.
    """
    for name in _STUBBED_PACKAGES:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            sys.modules[name] = module_from_spec(spec)
