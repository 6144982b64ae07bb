"""`reverie mcp`: the MCP server on standard input and output that an agent starts."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.app.errors import USAGE, print_error
from reverie.cli.app.options import home_option, set_option
from reverie.domain.core.errors import ReverieError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from reverie.cli.app.local_gateway import LocalGateway
    from reverie.mcp.handlers import McpHandlers


STARTUP_DELAY = 0.1
"""A delay before the gateway is looked up, so that the first answer is fast."""


@click.command("mcp")
@click.option(
    "--project",
    help="The project of calls that name none; default: from reverie.toml.",
)
@click.option("--agent", help="The agent, whose key `reverie setup` made; default: the first key.")
@click.option(
    "--profile",
    type=click.Choice(["full", "minimal"]),
    default="full",
    help="The tools to offer: full, or minimal (five tools).",
)
@home_option
@set_option
def mcp(
    project: str | None,
    agent: str | None,
    profile: str,
    home: Path | None,
    sets: tuple[str, ...],
) -> None:
    """Run the MCP server on standard input and output.

    A coding agent starts this command. It connects to REVERIE_GATEWAY_URL or
    to the gateway of this machine, with the configured key, else the agent's
    key or the first key in the home folder. If no gateway runs, it starts `reverie up`, unless
    REVERIE_MCP_AUTOSTART=false.

    Example: claude mcp add reverie -- reverie mcp --project shop

    Exit codes: 0 the agent closed it, 2 a setting is wrong.
    """
    import asyncio

    # A thread that reads standard input cannot be interrupted.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(_serve(_LazyGateway(project, agent, profile, home, sets)))


async def _serve(backend: _LazyGateway) -> None:
    import asyncio

    from reverie.mcp.stdio import serve_stdio

    serving = asyncio.create_task(serve_stdio(backend.open_tools))
    preparing = asyncio.create_task(backend.prepare())
    watching = asyncio.create_task(backend.watch(preparing))
    await asyncio.wait({serving, preparing}, return_when=asyncio.FIRST_COMPLETED)
    if not serving.done() and (error := preparing.exception()):
        print_error(error if isinstance(error, ReverieError) else ReverieError())
        os._exit(USAGE)
    await serving
    for task in (preparing, watching):
        task.cancel()
    await asyncio.wait({preparing, watching})
    await backend.close()


class _LazyGateway:
    """The gateway behind the protocol, opened at the first call or shortly after the start."""

    def __init__(
        self,
        project: str | None,
        agent: str | None,
        profile: str,
        home: Path | None,
        sets: tuple[str, ...],
    ) -> None:
        self._project = project
        self._agent = agent
        self._profile = profile
        self._home = home
        self._sets = sets
        self._lock = threading.Lock()
        self._gateway: LocalGateway | None = None

    def open_tools(self) -> McpHandlers:
        """The tools. Raises `Misconfigured`."""
        from reverie.mcp.handlers import McpHandlers

        gateway = self._get_gateway()
        project = self._project or gateway.project
        return McpHandlers(
            lambda _: gateway, self._profile, lambda _: project, knows_user=lambda _: True
        )

    async def prepare(self) -> None:
        """Finds or starts the gateway before the first call needs it."""
        import asyncio

        await asyncio.sleep(STARTUP_DELAY)
        gateway = await asyncio.to_thread(self._get_gateway)
        await gateway.prepare()

    async def watch(self, prepared: Awaitable[None]) -> None:
        """Watches this machine's clones, once the gateway was found or started."""
        from reverie.cli.agents.follow import watch_known_clones

        await prepared
        await watch_known_clones(self._get_gateway().settings)

    async def close(self) -> None:
        """Closes the connections."""
        if self._gateway is not None:
            await self._gateway.close()

    def _get_gateway(self) -> LocalGateway:
        with self._lock:
            if self._gateway is None:
                from reverie.cli.app.local_gateway import LocalGateway
                from reverie.cli.app.options import resolve_settings

                settings = resolve_settings(self._home, self._sets)
                self._gateway = LocalGateway(
                    settings, self._sets, self._agent or "", self._project or ""
                )
            return self._gateway
