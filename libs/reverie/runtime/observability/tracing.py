"""OpenTelemetry tracing: provider, exporters with redaction, and header propagation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock, Timer

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Status
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import Attributes, AttributeValue

from reverie.runtime.observability.logs import Redact, current_service, mask_credentials
from reverie.runtime.observability.span_file import SpanFileExporter
from reverie.runtime.settings.settings import Settings

_FLUSH_SECONDS = 2.0
_MAX_SPANS_FILE_BYTES = 16 << 20
_PROPAGATOR = TraceContextTextMapPropagator()


class _SpanDispatcher(SpanProcessor):
    """Passes spans to the current processor: a provider cannot remove a processor."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._listeners: tuple[SpanProcessor, ...] = ()

    def add(self, listener: SpanProcessor) -> None:
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def remove(self, listener: SpanProcessor) -> None:
        with self._lock:
            self._listeners = tuple(other for other in self._listeners if other is not listener)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        if (service := current_service.get()) is not None:
            span.set_attribute(SERVICE_NAME, service)
        for listener in self._listeners:
            listener.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        for listener in self._listeners:
            listener.on_end(span)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return all(listener.force_flush(timeout_millis) for listener in self._listeners)

    @property
    def has_listeners(self) -> bool:
        """Whether anyone listens."""
        return bool(self._listeners)


_span_dispatcher = _SpanDispatcher()


class _ListenerSampler(Sampler):
    """Spans are kept while someone listens; else they have their ids alone, and cost little."""

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: trace.SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[trace.Link] | None = None,
        trace_state: trace.TraceState | None = None,
    ) -> SamplingResult:
        state = trace.get_current_span(parent_context).get_span_context().trace_state
        decision = Decision.RECORD_AND_SAMPLE if _span_dispatcher.has_listeners else Decision.DROP
        return SamplingResult(decision, attributes, state)

    def get_description(self) -> str:
        return "WhileHeard"


@contextmanager
def export_spans(settings: Settings, process: str, redact: Redact | None = None) -> Iterator[None]:
    """Exports the spans of this process while it is open; flushes them at the end (2 s at most).

    Each span names the service that it is of, or else the `process`. `redact` is applied to every
    string of a span before it leaves the process.
    """
    install_provider(process)
    with ExitStack() as stack:
        for exporter in _create_exporters(settings):
            stack.enter_context(_attach_exporter(_RedactingExporter(exporter, redact)))
        yield


@contextmanager
def _attach_exporter(exporter: _RedactingExporter) -> Iterator[None]:
    processor = BatchSpanProcessor(exporter, schedule_delay_millis=500)
    _span_dispatcher.add(processor)
    try:
        yield
    finally:
        _span_dispatcher.remove(processor)
        # A collector that does not answer must not hold the process up.
        overdue = Timer(_FLUSH_SECONDS, exporter.shutdown)
        overdue.daemon = True
        overdue.start()
        processor.shutdown()  # type: ignore[no-untyped-call]
        overdue.cancel()


def install_provider(service: str) -> None:
    """Installs a provider of real spans, so that trace ids are valid even without an exporter."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        resource = Resource.create({"service.name": service, "service.namespace": "reverie"})
        provider = TracerProvider(_ListenerSampler(), resource, shutdown_on_exit=False)
        provider.add_span_processor(_span_dispatcher)
        trace.set_tracer_provider(provider)


def _create_exporters(settings: Settings) -> Iterator[SpanExporter]:
    if settings.spans_file is not None:
        yield SpanFileExporter(settings.spans_file, _MAX_SPANS_FILE_BYTES)
    if settings.otlp_endpoint is not None:
        # Here and not above: it is large, and few have a collector.
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        url = settings.otlp_endpoint.rstrip("/").removesuffix("/v1/traces")
        yield OTLPSpanExporter(endpoint=f"{url}/v1/traces", timeout=_FLUSH_SECONDS)


class _RedactingExporter(SpanExporter):
    """Passes spans on without credentials in their attributes, events and status."""

    def __init__(self, inner: SpanExporter, redact: Redact | None) -> None:
        self._inner = inner
        self._redact = redact
        self._closed = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._closed:
            return SpanExportResult.FAILURE
        return self._inner.export([self._redact_span(span) for span in spans])

    def shutdown(self) -> None:
        if not self._closed:
            self._closed = True
            self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)

    def _redact_span(self, span: ReadableSpan) -> ReadableSpan:
        described = span.status.description
        # A process has one resource, and may run several services.
        attributes = dict(span.attributes or {})
        service = attributes.pop(SERVICE_NAME, None)
        resource = Resource({SERVICE_NAME: service}) if service else None
        return ReadableSpan(
            name=span.name,
            context=span.context,
            parent=span.parent,
            resource=span.resource.merge(resource) if resource else span.resource,
            attributes=self._redact_attributes(attributes),
            events=[
                Event(event.name, self._redact_attributes(event.attributes), event.timestamp)
                for event in span.events
            ],
            links=span.links,
            kind=span.kind,
            status=Status(span.status.status_code, described and self._redact_text(described)),
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )

    def _redact_attributes(self, attributes: Attributes) -> Attributes:
        return {key: self._redact_value(value) for key, value in (attributes or {}).items()}

    def _redact_value(self, value: AttributeValue) -> AttributeValue:
        if isinstance(value, str):
            return self._redact_text(value)
        if isinstance(value, Sequence):
            return [self._redact_text(str(item)) for item in value]
        return value

    def _redact_text(self, text: str) -> str:
        masked = mask_credentials(text)
        return self._redact(masked) if self._redact else masked


def trace_headers() -> dict[str, str]:
    """The W3C headers (`traceparent`, `tracestate`) that carry the current span on."""
    headers: dict[str, str] = {}
    _PROPAGATOR.inject(headers)
    return headers


def extract_context(headers: Mapping[str, str]) -> Context:
    """Extracts the trace context of headers; an empty one if they have none or a malformed one."""
    return _PROPAGATOR.extract(headers, context=Context())


def current_trace_id() -> str | None:
    """The 32 hex digits of the trace in whose course this runs."""
    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else None


@contextmanager
def span(name: str, **attributes: str | int | float | bool) -> Iterator[trace.Span]:
    """A span around a piece of work; an exception marks it failed, by its class alone.

    Within a request that nobody keeps the spans of, it is that of the request.
    """
    parent = trace.get_current_span()
    if parent.get_span_context().is_valid and not parent.is_recording():
        yield parent
        return
    with trace.get_tracer("reverie").start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except Exception as error:
            mark_failed(current, type(error).__name__)
            raise


def mark_failed(current: trace.Span, reason: str) -> None:
    """Sets the span's status to error with a short, constant reason."""
    current.set_attribute("error.type", reason)
    current.set_status(trace.StatusCode.ERROR, reason)
