"""Records the spans that a module makes."""

from __future__ import annotations

from types import ModuleType

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


def record_spans(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, tracer: str
) -> InMemorySpanExporter:
    """Puts a tracer that records in the place of the module's, which has the name `tracer`."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(module, tracer, provider.get_tracer("test"))
    return exporter
