"""Spans of the bus; `tests/runtime/observability` follows traces through it."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from reverie.bus import telemetry
from reverie.bus.consumer import consume
from reverie.bus.interface import MessageBus
from tests.bus.bus_cases import ENRICH, Inbox, event, failing_on, one_dead, running, settled
from tests.support.span_recording import record_spans


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    return record_spans(monkeypatch, telemetry, "TRACER")


async def test_a_span_names_the_kind_of_failure_and_no_content(
    bus: MessageBus, spans: InMemorySpanExporter
) -> None:
    await bus.publish(event(payload="bad"))
    handler = failing_on("bad", ValueError("a secret"), Inbox())
    async with running(consume(bus, ENRICH, handler)):
        await one_dead(bus)
        await settled(bus)
    failed = [s for s in spans.get_finished_spans() if s.name == "ingest-enrich process"]
    assert [s.attributes and s.attributes["error.type"] for s in failed] == ["ValueError"] * 3
    assert not any("a secret" in s.to_json() for s in failed)
