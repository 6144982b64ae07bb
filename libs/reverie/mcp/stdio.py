"""The protocol on standard input and output."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mcp.server.stdio import stdio_server
from reverie.mcp.server import build

if TYPE_CHECKING:
    from reverie.mcp.door import Door


async def serve(make: Callable[[], Door]) -> None:
    """Answers until standard input ends; `make` makes the door when it is first needed."""
    server = build(make)
    async with stdio_server() as (heard, said):
        await server.run(heard, said, server.create_initialization_options())
