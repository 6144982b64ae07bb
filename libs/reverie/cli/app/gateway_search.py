"""What the watcher needs of the settings, and how it finds the gateway: with few imports."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.agent.gateway.discovery import GatewayLocation, locate_gateway
from reverie.agent.watch.known_clones import list_clones

if TYPE_CHECKING:
    from reverie.agent.gateway.http_client import GatewayConnection
    from reverie.agent.watch.local_watcher import LocalWatcher

CALL_TIMEOUT_SECONDS = 30.0
CLONE_SECONDS = 5.0
"""How often it is looked whether a first clone was set up."""


@dataclass(frozen=True)
class GatewaySearch:
    """Where the gateway is looked for, and who asks. `default_url`: where it is by the settings."""

    home: str
    url: str
    api_key: str
    default_url: str
    ca: str
    user: str

    def find(self, agent: str = "", project: str = "") -> GatewayLocation | None:
        """The gateway and its key; None if none responds.

        `agent` and `project` are those that `reverie setup` made a key for.
        """
        from reverie.embedded.probe import fetch_health

        home = os.path.realpath(self.home)
        location = locate_gateway(home, self.url, self.api_key, self.default_url, agent, project)
        if location.state == "default" and fetch_health(location.url).status is None:
            return None
        return location if location.key else None


async def watch_clones(search: GatewaySearch) -> None:
    """Watches the clones that were set up on this machine, until it is cancelled."""
    home = Path(search.home)
    # Without a clone, nothing of what reads them is imported.
    while not list_clones(home):  # noqa: ASYNC110
        await asyncio.sleep(CLONE_SECONDS)
    watcher = await asyncio.to_thread(build_watcher, search)
    await watcher.run()


def build_watcher(
    search: GatewaySearch, report: Callable[[str], None] = lambda _: None
) -> LocalWatcher:
    """The watcher of this machine; `report` takes a line for all that it sent."""
    from reverie.agent.gateway.http_client import GatewayConnection
    from reverie.agent.watch.local_watcher import LocalWatcher

    def connect(agent: str, project: str) -> GatewayConnection | None:
        location = search.find(agent, project)
        if location is None:
            return None
        return GatewayConnection(
            location.url,
            location.key,
            CALL_TIMEOUT_SECONDS,
            search.ca,
            agent="reverie-watch",
            user=search.user,
        )

    return LocalWatcher(Path(search.home), str(Path.home()), connect, report)
