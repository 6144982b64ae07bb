"""The one place that settles messages: a handler returns, or raises.

returns -> ack; `Retry` -> again after its delay; `Reject` -> dead letter; anything else ->
again with the consumer's back-off; the last allowed delivery that fails -> dead letter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import structlog

from reverie.bus import tracing
from reverie.bus.dead import Origin, bury
from reverie.bus.errors import Reject, Retry
from reverie.bus.port import Bus, Delivery, Message
from reverie.bus.streams import ConsumerSpec
from reverie.domain.errors import ReverieError

Handler = Callable[[Message], Awaitable[None]]

REASON_LENGTH: Final = 500
STOP_SECONDS: Final = 2.0
_OF_TENANTS: Final = frozenset({"memory", "dream", "git"})
"""First words of the subjects whose second is a tenant."""

log = structlog.get_logger("reverie.bus")


@dataclass(frozen=True)
class Again:
    """Deliver again after `delay` seconds."""

    delay: float


@dataclass(frozen=True)
class Never:
    """Bury, with the reason."""

    reason: str


async def consume(
    bus: Bus, spec: ConsumerSpec, handler: Handler, concurrency: int = 1, ahead: int = 1
) -> None:
    """Handle the consumer's messages for ever, `concurrency` at a time; cancel it to stop.

    However many that are, they are begun in the order in which they come, and sent for `ahead` at
    a time: what is handled quickly need not be asked for one by one. A handler must bear
    a second delivery. On cancellation what is in work is handed back, so that another worker gets
    it at once.
    """
    turn = asyncio.Lock()
    async with aclosing(bus.deliveries(spec, ahead)) as deliveries, asyncio.TaskGroup() as group:

        async def work() -> None:
            while True:
                async with turn:
                    delivery = await anext(deliveries)
                await _process(bus, spec, delivery, handler)

        for number in range(concurrency):
            group.create_task(work(), name=f"{spec.name} {number}")


async def _process(bus: Bus, spec: ConsumerSpec, delivery: Delivery, handler: Handler) -> None:
    message = delivery.message
    with (
        structlog.contextvars.bound_contextvars(**_facts(spec, message)),
        tracing.receiving(spec.name, message.subject, message.headers) as span,
    ):
        try:
            with bus.meters.handling(spec.name), _heartbeat(delivery, spec.ack_wait / 3):
                await handler(message)
        except BaseException as error:
            if _stops_us(error):
                bus.meters.handled(spec.name, "handed_back")
                await _hand_back(delivery)
                raise
            tracing.failed(span, error)
            await _settle(spec, delivery, _failed(bus, spec, delivery, error))
        else:
            bus.meters.handled(spec.name, "done")
            await _settle(spec, delivery, delivery.ack())


def _facts(spec: ConsumerSpec, message: Message) -> dict[str, str]:
    """What the log lines of a message's handling tell: its tenant is in the subject."""
    stream, _, rest = message.subject.partition(".")
    tenant = rest.partition(".")[0]
    return {"consumer": spec.name} | ({"tenant": tenant} if stream in _OF_TENANTS else {})


def _stops_us(error: BaseException) -> bool:
    """Whether the worker is asked to stop; a cancellation from inside the handler is a failure."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return not isinstance(error, Exception)


@contextmanager
def _heartbeat(delivery: Delivery, interval: float) -> Iterator[None]:
    """Most are handled before the first beat: only then is there a task for it."""
    beats = ExitStack()

    def begin() -> None:
        beats.callback(asyncio.ensure_future(_beat(delivery, interval)).cancel)

    first = asyncio.get_running_loop().call_later(interval, begin)
    try:
        yield
    finally:
        first.cancel()
        beats.close()


async def _beat(delivery: Delivery, interval: float) -> None:
    while True:
        with suppress(ReverieError):
            await delivery.progress()
        await asyncio.sleep(interval)


async def _hand_back(delivery: Delivery) -> None:
    with suppress(ReverieError, TimeoutError):
        async with asyncio.timeout(STOP_SECONDS):
            await delivery.nak(0)


async def _settle(spec: ConsumerSpec, delivery: Delivery, settling: Awaitable[None]) -> None:
    """An answer that is lost means another delivery, not a failure of the worker."""
    try:
        await settling
    except ReverieError as error:
        log.warning(
            "message_unsettled",
            consumer=spec.name,
            seq=delivery.seq,
            error=type(error).__name__,
        )


async def _failed(bus: Bus, spec: ConsumerSpec, delivery: Delivery, error: BaseException) -> None:
    verdict = judge(spec, delivery.message.deliveries, error)
    facts = {
        "consumer": spec.name,
        "seq": delivery.seq,
        "deliveries": delivery.message.deliveries,
        "error": type(error).__name__,
    }
    if isinstance(verdict, Again):
        bus.meters.handled(spec.name, "retried")
        log.warning("message_retried", delay=verdict.delay, exc_info=_unexpected(error), **facts)
        await delivery.nak(verdict.delay)
        return
    bus.meters.handled(spec.name, "buried")
    log.error("message_buried", reason=verdict.reason, exc_info=_unexpected(error), **facts)
    origin = Origin(spec.stream, spec.name, str(delivery.seq))
    await bury(bus, origin, delivery.message, verdict.reason)
    await delivery.term()


def judge(spec: ConsumerSpec, deliveries: int, error: BaseException) -> Again | Never:
    """What becomes of a message whose handling failed for the `deliveries`th time."""
    if isinstance(error, Reject):
        return Never(error.reason[:REASON_LENGTH])
    if 0 < spec.max_deliver <= deliveries:
        return Never(f"delivery {deliveries} of {spec.max_deliver} failed: {_describe(error)}")
    if isinstance(error, Retry):
        return Again(error.after)
    return Again(spec.backoff[min(deliveries, len(spec.backoff)) - 1])


def _describe(error: BaseException) -> str:
    """The first line only: a database quotes values in the ones below."""
    first = next(iter(str(error).splitlines()), "")
    name = type(error).__name__
    return f"{name}: {first}"[:REASON_LENGTH] if first else name


def _unexpected(error: BaseException) -> BaseException | None:
    known = isinstance(error, (Retry, Reject, ReverieError))
    return None if known else error
