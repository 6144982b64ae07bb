"""`reverie mcp`: the tools of Reverie for an agent that starts this command (stdio).

The agent waits for the first answer, so all but the protocol is imported behind that.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.common import USAGE, Home, Sets, say
from reverie.domain.errors import ReverieError

if TYPE_CHECKING:
    from reverie.cli.gateway import LocalGateway
    from reverie.mcp.door import Door

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

FIRST_SECONDS = 0.1
"""What the first answer is given before anything else is done."""


def mcp(
    project: Project = None, profile: Profile = None, home: Home = None, sets: Sets = None
) -> None:
    """Speak the Model Context Protocol on standard input and output.

    For the configuration of an agent, which starts it. It talks to the
    gateway of this machine, or to REVERIE_GATEWAY_URL, with the key that is
    set or kept in the home folder, and starts `reverie up` where none runs
    (REVERIE_MCP_START=false leaves that to you).

    Example: [bold]claude mcp add reverie -- reverie mcp --project shop[/]

    Exit codes: 0 the agent ended it, 2 a setting is wrong.
    """
    # Whoever waits for standard input in a thread cannot be told to stop.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(_serve(_Behind(project, profile, home, sets)))


async def _serve(behind: _Behind) -> None:
    from reverie.mcp.stdio import serve

    serving = asyncio.create_task(serve(behind.door))
    looking = asyncio.create_task(behind.look())
    await asyncio.wait({serving, looking}, return_when=asyncio.FIRST_COMPLETED)
    if not serving.done() and (error := looking.exception()):
        say(error if isinstance(error, ReverieError) else ReverieError())
        os._exit(USAGE)
    await serving
    looking.cancel()
    await asyncio.wait({looking})
    await behind.close()


class _Behind:
    """What stands behind the protocol, made when it is needed or a moment after the start."""

    def __init__(
        self, project: str | None, profile: str | None, home: Path | None, sets: list[str] | None
    ) -> None:
        self._project = project
        self._profile = profile
        self._home = home
        self._sets = sets or []
        self._making = threading.Lock()
        self._gateway: LocalGateway | None = None

    def door(self) -> Door:
        """The tools. Raises `Misconfigured`."""
        from reverie.mcp.door import Door

        gateway = self._made()
        project = self._project or gateway.project
        return Door(lambda _: gateway, gateway.profile, lambda _: project)

    async def look(self) -> None:
        """Looks for the gateway, and starts it where it may, before a call needs it."""
        await asyncio.sleep(FIRST_SECONDS)
        gateway = await asyncio.to_thread(self._made)
        await gateway.look()

    async def close(self) -> None:
        """Gives back the connections."""
        if self._gateway is not None:
            await self._gateway.close()

    def _made(self) -> LocalGateway:
        with self._making:
            if self._gateway is None:
                from reverie.cli.common import settings_from
                from reverie.cli.gateway import LocalGateway

                flags = {"mcp_profile": self._profile}
                settings = settings_from(self._home, self._sets, flags)
                self._gateway = LocalGateway(settings, self._sets)
            return self._gateway
