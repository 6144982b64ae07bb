"""The watcher inside `reverie up` and `reverie mcp`, and `reverie follow`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reverie.cli.app.options import CommonOptions, common_options
from reverie.cli.app.output import err, out
from reverie.domain.core.errors import Conflict, InvalidInput, Unavailable

if TYPE_CHECKING:
    from reverie.runtime.settings.settings import Settings


async def watch_known_clones(settings: Settings) -> None:
    """Watches the clones that were set up on this machine, until it is cancelled.

    It returns at once where the setting `watch_enabled` turns it off.
    """
    from reverie.cli.agents.watch_loop import watch_clones
    from reverie.cli.app.gateway_search import describe_search

    if settings.watch_enabled:
        await watch_clones(describe_search(settings))


@click.command("follow")
@click.option("--once", is_flag=True, help="Look once, and stop.")
@common_options
def follow(options: CommonOptions, once: bool) -> None:
    """Send the conversations of agents without hooks, and announce commits.

    `reverie up` and `reverie mcp` do the same by themselves. Use this where
    neither runs, because the gateway is on another machine. It watches the
    clones that were set up on this machine, and stops at Ctrl-C.

    Example: reverie follow --once

    Exit codes: 2 no clone was set up, 3 no gateway, 6 another process watches.
    """
    import asyncio
    from contextlib import suppress

    from filelock import Timeout

    from reverie.agent.watch.known_clones import list_clones
    from reverie.cli.agents.watch_loop import build_watcher
    from reverie.cli.app.gateway_search import describe_search, find_gateway
    from reverie.embedded.probe import fetch_health

    settings = options.settings()
    clones = list_clones(settings.home)
    if not clones:
        raise InvalidInput("home", "knows no clone: run `reverie setup AGENT` in one first")
    location = find_gateway(settings)
    if location is None or fetch_health(location.url).status is None:
        raise Unavailable("the gateway", "start `reverie up`, or set REVERIE_GATEWAY_URL")
    if not options.json:
        for clone in clones:
            err().print(f"watching {clone.root or 'all projects'}", markup=False)
    watcher = build_watcher(describe_search(settings), lambda line: out().print(line, markup=False))
    try:
        with watcher.locked():
            watcher.check_once()
    except Timeout:
        raise Conflict("another process of this home folder watches already") from None
    if not once:
        with suppress(KeyboardInterrupt):
            asyncio.run(watcher.run())
