"""The consumer loop: runs a message handler and acknowledges, retries or dead-letters.

A handler that returns acknowledges the message. `Retry` redelivers it after a delay, `Reject`
sends it to the dead letters, and any other error redelivers it with the consumer's back-off. The
last allowed delivery that fails becomes a dead letter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import structlog

from reverie.bus import telemetry
from reverie.bus.dead_letters import DeadLetterOrigin, publish_dead_letter
from reverie.bus.interface import Delivery, Message, MessageBus, Reject, Retry
from reverie.bus.streams import ConsumerSpec
from reverie.domain.core.errors import ReverieError

MessageHandler = Callable[[Message], Awaitable[None]]

MAX_REASON_LENGTH: Final = 500
STOP_SECONDS: Final = 2.0
_TENANT_SUBJECT_PREFIXES: Final = frozenset({"memory", "dream", "git", "turn"})
"""Subject prefixes whose second token is the tenant."""

log = structlog.get_logger("reverie.bus")


@dataclass(frozen=True)
class RedeliveryVerdict:
    """Deliver again after `delay` seconds."""

    delay: float


@dataclass(frozen=True)
class DeadLetterVerdict:
    """Send to the dead letters, with the reason."""

    reason: str


async def consume(
    bus: MessageBus,
    spec: ConsumerSpec,
    handler: MessageHandler,
    concurrency: int = 1,
    prefetch: int = 1,
) -> None:
    """Handles the consumer's messages until cancelled, `concurrency` at a time.

    Messages start in arrival order. `prefetch` messages are requested at a time. The handler must
    be idempotent. On cancellation, messages in progress are returned to the queue.
    """
    fetch_lock = asyncio.Lock()
    async with aclosing(bus.deliveries(spec, prefetch)) as deliveries, asyncio.TaskGroup() as group:

        async def work() -> None:
            while True:
                async with fetch_lock:
                    delivery = await anext(deliveries)
                await _process(bus, spec, delivery, handler)

        for number in range(concurrency):
            group.create_task(work(), name=f"{spec.name} {number}")


async def _process(
    bus: MessageBus, spec: ConsumerSpec, delivery: Delivery, handler: MessageHandler
) -> None:
    message = delivery.message
    with (
        structlog.contextvars.bound_contextvars(**_log_context(spec, message)),
        telemetry.process_span(spec.name, message.subject, message.headers) as span,
    ):
        try:
            with (
                bus.metrics.time_handling(spec.name),
                _send_heartbeats(delivery, spec.ack_wait / 3),
            ):
                await handler(message)
        except BaseException as error:
            if _is_shutdown(error):
                bus.metrics.count_handled(spec.name, "handed_back")
                with suppress(ReverieError, TimeoutError):
                    async with asyncio.timeout(STOP_SECONDS):
                        await delivery.nak(0)
                raise
            telemetry.mark_span_failed(span, error)
            await _settle(spec, delivery, _handle_failure(bus, spec, delivery, error))
        else:
            bus.metrics.count_handled(spec.name, "done")
            await _settle(spec, delivery, delivery.ack())


def _log_context(spec: ConsumerSpec, message: Message) -> dict[str, str]:
    """Returns the log context of a message; the tenant is in the subject."""
    stream, _, rest = message.subject.partition(".")
    tenant = rest.partition(".")[0]
    return {"consumer": spec.name} | (
        {"tenant": tenant} if stream in _TENANT_SUBJECT_PREFIXES else {}
    )


def _is_shutdown(error: BaseException) -> bool:
    """Whether the worker was asked to stop. A cancellation from inside the handler is a failure."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return not isinstance(error, Exception)


@contextmanager
def _send_heartbeats(delivery: Delivery, interval: float) -> Iterator[None]:
    """Heartbeats start after one interval, so short handlers create no task."""
    heartbeat_stack = ExitStack()

    def begin() -> None:
        heartbeat_stack.callback(asyncio.ensure_future(_heartbeat_loop(delivery, interval)).cancel)

    first_timer = asyncio.get_running_loop().call_later(interval, begin)
    try:
        yield
    finally:
        first_timer.cancel()
        heartbeat_stack.close()


async def _heartbeat_loop(delivery: Delivery, interval: float) -> None:
    while True:
        with suppress(ReverieError):
            await delivery.progress()
        await asyncio.sleep(interval)


async def _settle(spec: ConsumerSpec, delivery: Delivery, settlement: Awaitable[None]) -> None:
    """Settles the message.

    A lost confirmation means another delivery, not a failure of the worker.
    """
    try:
        await settlement
    except ReverieError as error:
        log.warning(
            "message_unsettled",
            consumer=spec.name,
            seq=delivery.seq,
            error=type(error).__name__,
        )


async def _handle_failure(
    bus: MessageBus, spec: ConsumerSpec, delivery: Delivery, error: BaseException
) -> None:
    verdict = decide_verdict(spec, delivery.message.deliveries, error)
    log_fields = {
        "consumer": spec.name,
        "seq": delivery.seq,
        "deliveries": delivery.message.deliveries,
        "error": type(error).__name__,
    }
    if isinstance(verdict, RedeliveryVerdict):
        bus.metrics.count_handled(spec.name, "retried")
        log.warning(
            "message_retried", delay=verdict.delay, exc_info=_unexpected_error(error), **log_fields
        )
        await delivery.nak(verdict.delay)
        return
    bus.metrics.count_handled(spec.name, "buried")
    log.error(
        "message_buried", reason=verdict.reason, exc_info=_unexpected_error(error), **log_fields
    )
    origin = DeadLetterOrigin(spec.stream, spec.name, str(delivery.seq))
    await publish_dead_letter(bus, origin, delivery.message, verdict.reason)
    await delivery.term()


def decide_verdict(
    spec: ConsumerSpec, deliveries: int, error: BaseException
) -> RedeliveryVerdict | DeadLetterVerdict:
    """Decides how to settle a message whose handling failed for the `deliveries`th time."""
    if isinstance(error, Reject):
        return DeadLetterVerdict(error.reason[:MAX_REASON_LENGTH])
    if 0 < spec.max_deliver <= deliveries:
        return DeadLetterVerdict(
            f"delivery {deliveries} of {spec.max_deliver} failed: {_describe_error(error)}"
        )
    if isinstance(error, Retry):
        return RedeliveryVerdict(error.delay)
    return RedeliveryVerdict(spec.backoff[min(deliveries, len(spec.backoff)) - 1])


def _describe_error(error: BaseException) -> str:
    """The first line only: a database quotes values in the ones below."""
    first_line = next(iter(str(error).splitlines()), "")
    name = type(error).__name__
    return f"{name}: {first_line}"[:MAX_REASON_LENGTH] if first_line else name


def _unexpected_error(error: BaseException) -> BaseException | None:
    is_expected = isinstance(error, (Retry, Reject, ReverieError))
    return None if is_expected else error
