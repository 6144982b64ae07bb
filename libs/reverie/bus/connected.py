"""One connection to NATS: what was asked of it fails as soon as it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from nats.aio.client import Client
from nats.js import JetStreamContext

from reverie.domain.errors import Unavailable

T = TypeVar("T")


def down() -> Unavailable:
    """What is said of a connection that is not there."""
    return Unavailable("NATS", "the connection is down; it is being re-established")


@dataclass(frozen=True)
class Connected:
    """One connection from its opening to its end; `gone` is done when it ended."""

    client: Client
    js: JetStreamContext
    gone: asyncio.Future[None]

    def end(self) -> None:
        if not self.gone.done():
            self.gone.set_result(None)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, or `Unavailable` as soon as the connection ends."""
        task = asyncio.current_task()
        assert task is not None
        asked, waits, cut = task.cancelling(), True, False

        def ended(_: object) -> None:
            nonlocal cut
            if waits:
                cut = task.cancel()

        self.gone.add_done_callback(ended)
        try:
            return await work
        except asyncio.CancelledError:
            # By the end, or by the driver, which cancels what waits on it when it closes.
            raise down() from None
        finally:
            waits = False
            self.gone.remove_done_callback(ended)
            if cut:
                task.uncancel()
            if task.cancelling() > asked:
                # By who stops us, whatever the driver made of it: an answer that came in the same
                # moment, or an error of its own.
                raise asyncio.CancelledError
