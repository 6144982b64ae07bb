"""One NATS connection from open to close; pending calls fail as soon as it closes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from nats.aio.client import Client
from nats.js import JetStreamContext

from reverie.domain.core.errors import Unavailable

T = TypeVar("T")


def connection_lost_error() -> Unavailable:
    """Returns the error for a missing connection."""
    return Unavailable("NATS", "the connection is down; it is being re-established")


@dataclass(frozen=True)
class NatsSession:
    """One connection from its opening to its end; `closed` is done when it ended."""

    client: Client
    js: JetStreamContext
    closed: asyncio.Future[None]

    def mark_closed(self) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, or `Unavailable` as soon as the connection ends."""
        task = asyncio.current_task()
        assert task is not None
        cancel_count, waiting, cut = task.cancelling(), True, False

        def ended(_: object) -> None:
            nonlocal cut
            if waiting:
                cut = task.cancel()

        self.closed.add_done_callback(ended)
        try:
            return await work
        except asyncio.CancelledError:
            # By the end, or by the driver, which cancels what waits on it when it closes.
            raise connection_lost_error() from None
        finally:
            waiting = False
            self.closed.remove_done_callback(ended)
            if cut:
                task.uncancel()
            if task.cancelling() > cancel_count:
                # By who stops us, whatever the driver made of it: an answer that came in the same
                # moment, or an error of its own.
                raise asyncio.CancelledError
