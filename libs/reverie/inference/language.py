"""A language model that may be asked: within a budget, a time and a number of tries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity import wait_random_exponential as backing_off

from reverie.inference.asking import (
    Again,
    LanguageEndpoint,
    Ledger,
    Refused,
    Shape,
    Spent,
    Tally,
    Unanswered,
)
from reverie.inference.breaker import Breaker
from reverie.inference.language_meters import LanguageMeters
from reverie.inference.prompts import Prompt

if TYPE_CHECKING:
    from reverie.inference.wire import Wire

log = structlog.get_logger("reverie.inference")

MAX_PAUSE = 30.0
AT_ONCE = 4


class LanguageModel:
    """One model for all tenants of a process; each has its own budget a day."""

    def __init__(
        self,
        endpoint: LanguageEndpoint,
        ledger: Ledger,
        breaker: Breaker | None = None,
        meters: LanguageMeters | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._meters = meters or LanguageMeters(CollectorRegistry())
        self._ledger = ledger
        self._breaker = breaker or Breaker()
        self._wire: Wire | None = None
        self._opening = asyncio.Lock()
        self._slots = asyncio.Semaphore(AT_ONCE)

    @property
    def name(self) -> str:
        """The model's name, as it is recorded beside what it made."""
        return self.endpoint.model

    async def ask(
        self, tenant: int, prompt: Prompt, text: str, shape: type[Shape], tally: Tally
    ) -> Shape:
        """The answer to a prompt about a text that is fenced already. Raises `Unanswered`.

        Each try takes one call of the tenant's budget, also one that fails.
        """
        wire = await self._opened()
        tries = AsyncRetrying(
            retry=retry_if_exception_type(Again),
            stop=stop_after_attempt(self.endpoint.attempts),
            wait=partial(_pause, self.endpoint.pause),
            reraise=True,
        )
        try:
            async for attempt in tries:
                with attempt:
                    return await self._once(wire, tenant, prompt, text, shape, tally)
        except Unanswered as error:
            tally.degraded = tally.degraded or str(error)
            log.warning("llm_unanswered", task=prompt.label, reason=str(error))
            raise
        raise AssertionError("a try returns or raises")

    async def close(self) -> None:
        """Ends its connections."""
        if self._wire is not None:
            await self._wire.close()

    async def _once(
        self, wire: Wire, tenant: int, prompt: Prompt, text: str, shape: type[Shape], tally: Tally
    ) -> Shape:
        if self._breaker.rests():
            raise Refused("it failed too often and rests")
        if not await self._ledger.take(tenant):
            raise Refused("the budget of the day is spent")
        spent, begun = Spent(), perf_counter()
        failed = 1
        try:
            async with self._slots:
                # What it waits for its turn is not the model's.
                begun = perf_counter()
                try:
                    answer = await wire.ask(prompt.text, text, shape, prompt.name, spent)
                # Cancelled: whoever asked could wait no longer.
                except (Unanswered, asyncio.CancelledError):
                    self._breaker.failed()
                    raise
            failed = 0
            self._breaker.worked()
            return answer
        finally:
            calls = max(spent.requests, 1)
            tally.add(calls, failed, spent)
            self._meters.asked(
                prompt.name, "failed" if failed else "answered", spent, perf_counter() - begun
            )
            await self._ledger.book(tenant, calls - 1, failed, spent.sent, spent.received)

    async def _opened(self) -> Wire:
        """The wire, opened in a thread, for the import takes seconds."""
        async with self._opening:
            if self._wire is None:
                self._wire = await asyncio.to_thread(_open, self.endpoint)
        return self._wire


@asynccontextmanager
async def open_language(
    endpoint: LanguageEndpoint | None, ledger: Ledger, registry: CollectorRegistry
) -> AsyncIterator[LanguageModel | None]:
    """The model behind an endpoint, None where there is none. It connects at the first question."""
    meters = LanguageMeters(registry)
    model = LanguageModel(endpoint, ledger, meters=meters) if endpoint else None
    try:
        yield model
    finally:
        if model is not None:
            await model.close()


def _open(endpoint: LanguageEndpoint) -> Wire:
    wire: Wire = import_module("reverie.inference.wire").Wire(endpoint)
    return wire


def _pause(first: float, state: RetryCallState) -> float:
    """What the endpoint asked for, else longer after each try; seconds."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.after if isinstance(error, Again) else None
    usual = backing_off(multiplier=first, max=8.0)(state)
    return min(max(asked or 0.0, usual), MAX_PAUSE)
