"""The watcher of the clones of this machine, with few imports: `reverie up` keeps it loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.agent.watch.known_clones import list_clones
from reverie.cli.app.gateway_search import GatewaySearch

if TYPE_CHECKING:
    from reverie.agent.gateway.http_client import GatewayConnection
    from reverie.agent.watch.local_watcher import LocalWatcher

CALL_TIMEOUT_SECONDS = 30.0
CLONE_SECONDS = 5.0
"""How often it is looked whether a first clone was set up."""


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
