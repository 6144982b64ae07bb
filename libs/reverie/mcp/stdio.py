"""The protocol on standard input and output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reverie.mcp.door import Door

_PACKAGES = ("mcp", "mcp.server")


async def serve(make: Callable[[], Door]) -> None:
    """Answers until standard input ends; `make` makes the door when it is first needed.

    It is for a process of its own: the SDK's clients and its framework are not loaded there.
    """
    _leave_out_the_rest()
    from mcp.server.stdio import stdio_server
    from reverie.mcp.server import build

    server = build(make)
    async with stdio_server() as (heard, said):
        await server.run(heard, said, server.create_initialization_options())


def _leave_out_the_rest() -> None:
    """Puts the SDK's packages in place without running what they import by the way.

    That is a sixth of the processor time until the first answer, for which an agent waits.
    """
    for name in _PACKAGES:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            sys.modules[name] = module_from_spec(spec)
