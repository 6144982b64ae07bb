"""`reverie mcp`: the MCP server on standard input and output that an agent starts."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.app.common import USAGE, Home, Sets, print_error
from reverie.domain.core.errors import ReverieError

if TYPE_CHECKING:
    from reverie.cli.app.local_gateway import LocalGateway
    from reverie.mcp.handlers import McpHandlers

Project = Annotated[
    str | None,
    typer.Option(
        "--project",
        help="The project that calls without a place mean; unset: this folder's (reverie.toml).",
    ),
]
Profile = Annotated[
    str | None, typer.Option("--profile", help="The tools offered: full, or minimal (five).")
]

STARTUP_DELAY = 0.1
"""What the first answer is given before anything else is done."""


def mcp(
    project: Project = None, profile: Profile = None, home: Home = None, sets: Sets = None
) -> None:
    """Speak the Model Context Protocol on standard input and output.

    For the configuration of an agent, which starts it. It talks to the
    gateway of this machine, or to REVERIE_GATEWAY_URL, with the key that is
    set or kept in the home folder, and starts `reverie up` where none runs
    (REVERIE_MCP_AUTOSTART=false leaves that to you).

    Example: [bold]claude mcp add reverie -- reverie mcp --project shop[/]

    Exit codes: 0 the agent ended it, 2 a setting is wrong.
    """
    # Whoever waits for standard input in a thread cannot be told to stop.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(_serve(_LazyGateway(project, profile, home, sets)))


async def _serve(backend: _LazyGateway) -> None:
    from reverie.mcp.stdio import serve_stdio

    serving = asyncio.create_task(serve_stdio(backend.open_tools))
    preparing = asyncio.create_task(backend.prepare())
    await asyncio.wait({serving, preparing}, return_when=asyncio.FIRST_COMPLETED)
    if not serving.done() and (error := preparing.exception()):
        print_error(error if isinstance(error, ReverieError) else ReverieError())
        os._exit(USAGE)
    await serving
    preparing.cancel()
    await asyncio.wait({preparing})
    await backend.close()


class _LazyGateway:
    """What stands behind the protocol, made when it is needed or a moment after the start."""

    def __init__(
        self, project: str | None, profile: str | None, home: Path | None, sets: list[str] | None
    ) -> None:
        self._project = project
        self._profile = profile
        self._home = home
        self._sets = sets or []
        self._lock = threading.Lock()
        self._gateway: LocalGateway | None = None

    def open_tools(self) -> McpHandlers:
        """The tools. Raises `Misconfigured`."""
        from reverie.mcp.handlers import McpHandlers

        gateway = self._get_gateway()
        project = self._project or gateway.project
        return McpHandlers(lambda _: gateway, gateway.profile, lambda _: project)

    async def prepare(self) -> None:
        """Looks for the gateway, and starts it where it may, before a call needs it."""
        await asyncio.sleep(STARTUP_DELAY)
        gateway = await asyncio.to_thread(self._get_gateway)
        await gateway.prepare()

    async def close(self) -> None:
        """Gives back the connections."""
        if self._gateway is not None:
            await self._gateway.close()

    def _get_gateway(self) -> LocalGateway:
        with self._lock:
            if self._gateway is None:
                from reverie.cli.app.common import resolve_settings
                from reverie.cli.app.local_gateway import LocalGateway

                flags = {"mcp_profile": self._profile}
                settings = resolve_settings(self._home, self._sets, flags)
                self._gateway = LocalGateway(settings, self._sets)
            return self._gateway
