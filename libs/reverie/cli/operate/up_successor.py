"""The successor of `reverie up`: a small program that watches the processes, and the clones.

It takes the place of the program that started them, so it imports next to nothing.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

from reverie.cli.agents.watch_loop import watch_clones
from reverie.cli.app.gateway_search import GatewaySearch
from reverie.embedded.home import Home
from reverie.embedded.supervision.hand_over import HandOver, receive, unblock_stop_signals
from reverie.embedded.supervision.process_watch import stop_all, supervise, watch_stop_signals


class PlainNotes:
    """Notes to a person on standard output, or beside JSON on standard error."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def note(self, text: str) -> None:
        """Prints what a person should know."""
        # Here and not above: nothing is printed until a process ends.
        from reverie.cli.app.output import err, out

        # Where nobody reads it or no disk takes it, what runs goes on; rich ends at a closed pipe.
        with suppress(OSError, SystemExit):
            (err() if self._as_json else out()).print(text, markup=False)

    def progress(self, text: str) -> None:
        """Prints what a program that reads JSON need not know."""
        if not self._as_json:
            self.note(text)


async def supervise_all(received: HandOver) -> None:
    """Watches everything until a signal, then stops it."""
    caller, home = received.caller, Home(Path(received.home))
    services, servers = received.inherited_services(), received.inherited_servers()
    notes = PlainNotes(caller["as_json"])
    async with watch_stop_signals() as stop:
        unblock_stop_signals()
        search = caller["search"]
        watching = asyncio.create_task(watch_clones(GatewaySearch(**search))) if search else None
        try:
            await supervise(servers, services, received.own_certificate, stop, notes)
        finally:
            notes.progress("Stopping Reverie")
            # The services end orderly here too: a cut lifeline means the same as SIGTERM.
            os.close(received.lifeline_fd)
            if watching is not None:
                watching.cancel()
            await stop_all(servers, services, home)
    notes.progress("Reverie stopped")


def main() -> None:
    """Watches what was handed over. An error is one line on standard error, and an exit code."""
    received = receive(sys.argv[1])
    try:
        asyncio.run(supervise_all(received))
    except Exception as error:
        # Here and not above: it imports the command line.
        from reverie.cli.app.main import report_failure

        sys.exit(report_failure(error, received.caller["as_json"]))


if __name__ == "__main__":
    main()
