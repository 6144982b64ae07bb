"""Trace context is carried by bus messages."""

from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from reverie.bus import telemetry
from reverie.bus.consumer import consume
from reverie.bus.interface import Message, MessageBus
from tests.bus.bus_cases import ENRICH, Inbox, event, failing_on, one_dead, running, settled
from tests.support.span_recording import record_spans


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    return record_spans(monkeypatch, telemetry, "TRACER")


async def test_the_trace_continues_across_the_bus(
    bus: MessageBus, spans: InMemorySpanExporter
) -> None:
    inside: list[int] = []
    inbox = Inbox()

    async def handle(message: Message) -> None:
        inside.append(trace.get_current_span().get_span_context().trace_id)
        await inbox(message)

    with telemetry.TRACER.start_as_current_span("request") as request:
        await bus.publish(event())
    async with running(consume(bus, ENRICH, handle)):
        await inbox.next()
        await settled(bus)
    assert inside == [request.get_span_context().trace_id]
    by_name = {span.name: span for span in spans.get_finished_spans()}
    sent, got = by_name["bus publish"], by_name["ingest-enrich process"]
    assert sent.parent == request.get_span_context()
    assert got.parent is not None
    assert sent.context is not None
    assert got.parent.span_id == sent.context.span_id


async def test_a_relayed_event_continues_the_trace_of_its_writer(
    bus: MessageBus, spans: InMemorySpanExporter
) -> None:
    written = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    inbox = Inbox()
    with telemetry.TRACER.start_as_current_span("relay"):
        await bus.publish(event(traceparent=written))
    async with running(consume(bus, ENRICH, inbox)):
        message = await inbox.next()
        await settled(bus)
    assert message.headers["traceparent"] == written
    traces = {s.name: s.context and s.context.trace_id for s in spans.get_finished_spans()}
    expected = 0x0AF7651916CD43DD8448EB211C80319C
    assert traces["bus publish"] == traces["ingest-enrich process"] == expected
    assert traces["relay"] != expected


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
