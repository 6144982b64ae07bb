"""Pulling messages of a durable consumer of NATS."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import nats.errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from reverie.bus.streams import ConsumerSpec
from reverie.bus.watching import PULL_SECONDS, Life
from reverie.domain.errors import Unavailable

DRIVER_ERRORS: Final = (nats.errors.Error, OSError, TimeoutError)


@asynccontextmanager
async def pulling(
    life: Life, spec: ConsumerSpec
) -> AsyncIterator[JetStreamContext.PullSubscription]:
    """A pull on a durable consumer; what came too late for it is handed back at its end."""
    pull = await life.run(life.js.pull_subscribe_bind(consumer=spec.name, stream=spec.stream))
    try:
        yield pull
    finally:
        with suppress(Unavailable, *DRIVER_ERRORS):
            await _hand_back(life, pull)


async def _hand_back(life: Life, pull: JetStreamContext.PullSubscription) -> None:
    """Messages that came too late for this worker go to another one at once."""
    await life.run(pull.unsubscribe())
    while pull.pending_msgs:
        for raw in await life.run(pull.fetch(1, timeout=0.1)):
            await life.run(raw.nak())


async def next_of(
    life: Life, pull: JetStreamContext.PullSubscription, ahead: int = 1
) -> Msg | None:
    """The next message; None where there is none in time.

    Where others wait on the server, up to `ahead` are sent for with it, to be here by then.
    """
    alone = not pull.pending_msgs
    try:
        [raw] = await life.run(pull.fetch(1, timeout=PULL_SECONDS))
    except nats.errors.TimeoutError:
        return None
    if alone and (more := min(raw.metadata.num_pending, ahead - 1)) > 0:
        with suppress(Unavailable, *DRIVER_ERRORS):
            await life.run(_send_for(pull, more))
    return raw


async def _send_for(pull: JetStreamContext.PullSubscription, more: int) -> None:
    """Asks for messages, without waiting for them: the next fetches find them here.

    The driver's own way to fetch several waits until all came.
    """
    asked = json.dumps({"batch": more, "no_wait": True}).encode()
    await pull._nc.publish(pull._nms, asked, pull._deliver)
