"""The watcher inside `reverie up` and `reverie mcp`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reverie.cli.app.local_gateway import find_gateway

if TYPE_CHECKING:
    from reverie.agent.gateway.http_client import GatewayConnection
    from reverie.runtime.settings.settings import Settings

CALL_TIMEOUT_SECONDS: Final = 30.0


async def watch_known_clones(settings: Settings) -> None:
    """Watches the clones that were set up on this machine, until it is cancelled.

    It returns at once where the setting `watch_enabled` turns it off.
    """
    if not settings.watch_enabled:
        return
    from reverie.agent.gateway.http_client import GatewayConnection
    from reverie.agent.gateway.user_detection import detect_user
    from reverie.agent.watch.local_watcher import LocalWatcher

    user, ca = detect_user(settings.user or "", os.environ), settings.trusted_ca_file

    def connect(agent: str, project: str) -> GatewayConnection | None:
        location = find_gateway(settings, agent, project)
        if location is None:
            return None
        return GatewayConnection(
            location.url,
            location.key,
            CALL_TIMEOUT_SECONDS,
            str(ca or ""),
            agent="reverie-watch",
            user=user,
        )

    await LocalWatcher(settings.home, str(Path.home()), connect).run()
