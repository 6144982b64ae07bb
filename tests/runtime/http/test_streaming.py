"""Sources that are read with ticks: each runs in a context of its own, up to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from reverie.runtime.http.streaming import iterate_with_ticks


async def _hold_span(count: int) -> AsyncGenerator[bool, None]:
    """Says `count` times whether its span is the current one, and then waits."""
    with TracerProvider().get_tracer("test").start_as_current_span("held") as span:
        for _ in range(count):
            yield trace.get_current_span() is span
        await asyncio.Event().wait()


@pytest.mark.parametrize("ticks", [[], [None]], ids=["between items", "while it waits"])
async def test_a_source_holds_a_span_until_it_is_left(
    ticks: list[None], caplog: pytest.LogCaptureFixture
) -> None:
    before = trace.get_current_span()
    async with aclosing(iterate_with_ticks(_hold_span(2), 0.01)) as items:
        seen = [await anext(items) for _ in range(2 + len(ticks))]
        assert trace.get_current_span() is before
    assert seen == [True, True, *ticks]
    # A span that is left in another context than it was entered in is an error in the log.
    assert caplog.messages == []
