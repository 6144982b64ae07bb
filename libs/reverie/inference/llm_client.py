"""Calls a language model within a daily budget, with retries, a circuit breaker and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

import structlog
from opentelemetry import trace
from prometheus_client import CollectorRegistry, Counter, Histogram
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity import wait_random_exponential as backing_off

from reverie.inference.llm_endpoint import (
    CallUsage,
    LanguageBudget,
    LanguageCallRejected,
    LanguageEndpoint,
    LanguageModelError,
    OutputT,
    RetryableLanguageModelError,
    UsageTally,
)
from reverie.inference.llm_prompts import TaskPrompt


class CircuitBreaker:
    """Opens after `limit` failures in a row, for `seconds`; then one call tries again."""

    def __init__(
        self, limit: int = 5, cooldown: float = 60.0, clock: Callable[[], float] = monotonic
    ) -> None:
        self._limit, self._cooldown, self._clock = limit, cooldown, clock
        self._failures = 0
        self._open_until = 0.0

    def is_open(self) -> bool:
        """Whether calls are rejected. After the pause, the first caller may try again."""
        if self._failures < self._limit:
            return False
        if self._clock() < self._open_until:
            return True
        self._open_until = self._clock() + self._cooldown
        return False

    def record_success(self) -> None:
        """A call was answered."""
        self._failures = 0

    def record_failure(self) -> None:
        """A call was not answered."""
        self._failures += 1
        if self._failures >= self._limit:
            self._open_until = self._clock() + self._cooldown


_LATENCY_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120)


class LanguageMetrics:
    """Counters of this process, by task (the name of the prompt)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "reverie_llm_calls",
            "Calls of language models, by task and outcome.",
            ["task", "outcome"],
            registry=registry,
        )
        self._tokens = Counter(
            "reverie_llm_tokens",
            "Tokens of language models, by task and direction (sent, received).",
            ["task", "direction"],
            registry=registry,
        )

        self._seconds = Histogram(
            "reverie_llm_call_seconds",
            "Seconds per call of a language model, by task and outcome.",
            ["task", "outcome"],
            buckets=_LATENCY_BUCKETS,
            registry=registry,
        )

    def observe_call(self, task: str, outcome: str, call_usage: CallUsage, seconds: float) -> None:
        """Records one call, its cost and its duration."""
        self._seconds.labels(task, outcome).observe(seconds, _current_exemplar())
        self._calls.labels(task, outcome).inc()
        self._tokens.labels(task, "sent").inc(call_usage.input_tokens)
        self._tokens.labels(task, "received").inc(call_usage.output_tokens)


def _current_exemplar() -> dict[str, str] | None:
    """The trace that a call is part of, if its spans are recorded."""
    context = trace.get_current_span().get_span_context()
    sampled = context.is_valid and context.trace_flags.sampled
    return {"trace_id": format(context.trace_id, "032x")} if sampled else None


if TYPE_CHECKING:
    from reverie.inference.llm_transport import LanguageModelTransport

log = structlog.get_logger("reverie.inference")

MAX_RETRY_DELAY = 30.0
MAX_CONCURRENT_LANGUAGE_CALLS = 4


class LanguageModel:
    """One model for all tenants of a process; each has its own budget a day."""

    def __init__(
        self,
        endpoint: LanguageEndpoint,
        budget: LanguageBudget,
        breaker: CircuitBreaker | None = None,
        metrics: LanguageMetrics | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._metrics = metrics or LanguageMetrics(CollectorRegistry())
        self._budget = budget
        self._breaker = breaker or CircuitBreaker()
        self._transport: LanguageModelTransport | None = None
        self._transport_lock = asyncio.Lock()
        self._semaphore = asyncio.Semaphore(MAX_CONCURRENT_LANGUAGE_CALLS)

    @property
    def name(self) -> str:
        """The model's name, as recorded with its results."""
        return self.endpoint.model

    async def ask(
        self,
        tenant: int,
        prompt: TaskPrompt,
        text: str,
        output_type: type[OutputT],
        usage: UsageTally | None = None,
        time_limit: float | None = None,
        picture: tuple[bytes, str] | None = None,
    ) -> OutputT:
        """Returns the model's output for a prompt about a text that is already fenced.

        Raises `LanguageModelError`. Each try uses one call of the tenant's budget, even if it
        fails. `time_limit`: seconds for all tries together. `picture`: bytes and media type of
        what the text speaks of.
        """
        usage = usage or UsageTally()
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(RetryableLanguageModelError),
            stop=stop_after_attempt(self.endpoint.attempts),
            wait=partial(_retry_delay, self.endpoint.retry_delay),
            reraise=True,
        )
        try:
            async with asyncio.timeout(time_limit):
                transport = await self._get_transport()
                async for attempt in retrying:
                    with attempt:
                        return await self._try_once(
                            transport, tenant, prompt, text, output_type, usage, picture
                        )
        except TimeoutError as error:
            raise LanguageModelError("it took too long") from error
        except LanguageModelError as error:
            usage.degraded_reason = usage.degraded_reason or str(error)
            log.warning("llm_call_failed", task=prompt.label, reason=str(error))
            raise
        raise AssertionError("a try returns or raises")

    async def close(self) -> None:
        """Ends its connections."""
        if self._transport is not None:
            await self._transport.close()

    async def _try_once(
        self,
        transport: LanguageModelTransport,
        tenant: int,
        prompt: TaskPrompt,
        text: str,
        output_type: type[OutputT],
        usage: UsageTally,
        picture: tuple[bytes, str] | None,
    ) -> OutputT:
        if self._breaker.is_open():
            raise LanguageCallRejected("it failed too often and rests")
        if not await self._budget.reserve_call(tenant, usage.principal):
            raise LanguageCallRejected("the budget of the day is spent")
        call_usage, started = CallUsage(), perf_counter()
        failed = 1
        try:
            async with self._semaphore:
                # The time in the queue is not the model's.
                started = perf_counter()
                try:
                    answer = await transport.ask(
                        prompt.text, text, output_type, prompt.name, call_usage, picture
                    )
                # Cancelled: whoever asked could wait no longer.
                except (LanguageModelError, asyncio.CancelledError):
                    self._breaker.record_failure()
                    raise
            failed = 0
            self._breaker.record_success()
            return answer
        finally:
            calls = max(call_usage.requests, 1)
            usage.add(calls, failed, call_usage)
            self._metrics.observe_call(
                prompt.name,
                "failed" if failed else "answered",
                call_usage,
                perf_counter() - started,
            )
            await self._budget.record_usage(
                tenant,
                usage.principal,
                calls - 1,
                failed,
                call_usage.input_tokens,
                call_usage.output_tokens,
            )

    async def _get_transport(self) -> LanguageModelTransport:
        """Returns the transport. It is opened in a thread, because its import takes seconds."""
        async with self._transport_lock:
            if self._transport is None:
                self._transport = await asyncio.to_thread(_create_transport, self.endpoint)
        return self._transport


@asynccontextmanager
async def open_language_model(
    endpoint: LanguageEndpoint | None, budget: LanguageBudget, registry: CollectorRegistry
) -> AsyncIterator[LanguageModel | None]:
    """Returns the model behind an endpoint, None if there is none. It connects at the first
    question."""
    metrics = LanguageMetrics(registry)
    model = LanguageModel(endpoint, budget, metrics=metrics) if endpoint else None
    try:
        yield model
    finally:
        if model is not None:
            await model.close()


def _create_transport(endpoint: LanguageEndpoint) -> LanguageModelTransport:
    transport: LanguageModelTransport = import_module(
        "reverie.inference.llm_transport"
    ).LanguageModelTransport(endpoint)
    return transport


def _retry_delay(first_delay: float, state: RetryCallState) -> float:
    """Seconds before the next try: as the endpoint requested, else longer after each try."""
    error = state.outcome.exception() if state.outcome else None
    requested_delay = error.retry_after if isinstance(error, RetryableLanguageModelError) else None
    backoff_delay = backing_off(multiplier=first_delay, max=8.0)(state)
    return min(max(requested_delay or 0.0, backoff_delay), MAX_RETRY_DELAY)
