"""Runs a stage of a read with a deadline; a fallback replaces its value if it fails."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, Generic, TypeAlias, TypeVar, cast

import structlog

from reverie.domain.core.errors import ReverieError
from reverie.runtime.observability.tracing import span
from reverie.runtime.process.asyncio_helpers import run_with_timeout

log = structlog.get_logger("reverie.recall")

T = TypeVar("T")
Eventual: TypeAlias = Awaitable[T] | T
"""A value, or what becomes one once it is awaited."""


@dataclass(frozen=True)
class Deadline:
    """When a read must be over; `started` is a time of the monotonic clock."""

    started: float
    timeout: float

    def remaining(self, share: float = 1.0) -> float:
        """The seconds until that share of the timeout is over."""
        return max(0.0, self.timeout * share - (time.monotonic() - self.started))


@dataclass(frozen=True)
class StageOutcome(Generic[T]):
    """The value of a stage, or its fallback; `milliseconds` is None for a stage that is off."""

    name: str
    value: T
    milliseconds: float | None = None
    failed: bool = False


@dataclass(frozen=True)
class StageReport:
    """The stages that failed, and the milliseconds that each stage took."""

    degraded: tuple[str, ...] = ()
    milliseconds: Mapping[str, float] = field(default_factory=dict)

    def with_outcomes(self, *outcomes: StageOutcome[Any]) -> StageReport:
        """The report with further outcomes; a stage that ran before is added to."""
        degraded, milliseconds = list(self.degraded), dict(self.milliseconds)
        for outcome in outcomes:
            if outcome.failed and outcome.name not in degraded:
                degraded.append(outcome.name)
            if outcome.milliseconds is not None:
                total = milliseconds.get(outcome.name, 0.0) + outcome.milliseconds
                milliseconds[outcome.name] = round(total, 2)
        return StageReport(tuple(degraded), milliseconds)


async def resolve(value: Eventual[T], seconds: float | None = None) -> T:
    """The value itself, or what it becomes. Raises `TimeoutError` after `seconds`."""
    if not isawaitable(value):
        return value
    return cast("T", await (value if seconds is None else run_with_timeout(value, seconds)))


async def run_stage(
    name: str, seconds: float, work: Callable[[], Eventual[T]] | None, fallback: T
) -> StageOutcome[T]:
    """Runs a stage; the fallback replaces it if it fails, is late, or is off (None)."""
    if work is None:
        return StageOutcome(name, fallback)
    started = time.perf_counter()
    value, failed = fallback, True
    try:
        with span(f"recall {name}"):
            value, failed = await resolve(work(), seconds), False
    except (ReverieError, TimeoutError) as error:
        log.warning("arm_failed", arm=name, error=type(error).__name__)
    except Exception as error:
        log.exception("arm_failed", arm=name, error=type(error).__name__)
    return StageOutcome(name, value, (time.perf_counter() - started) * 1000, failed)
