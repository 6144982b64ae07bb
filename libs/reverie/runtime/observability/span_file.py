"""A span exporter that appends JSON lines to a file shared by several processes."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, format_span_id, format_trace_id

log = structlog.get_logger()


class SpanFileExporter(SpanExporter):
    """Appends one JSON object a line; at `limit` bytes the file becomes `<name>.1`."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        lines = "".join(json.dumps(span_record(span)) + "\n" for span in spans)
        try:
            self._append(lines.encode())
        except OSError as error:
            log.warning("span_export_failed", path=str(self._path), reason=error.strerror)
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing stays open between two batches."""

    def _append(self, data: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self._path) as file:
            size = os.fstat(file).st_size
            if size == 0 or size + len(data) <= self._limit:
                _write_all(file, data)
                return
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        self._append(data)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The file that has this name now, locked: another process may have just moved it aside."""
    while True:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_same_file(file, path):
                yield file
                return
        finally:
            os.close(file)


def _is_same_file(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def span_record(span: ReadableSpan) -> dict[str, Any]:
    """A span as a plain object; times are RFC 3339 in UTC, ids are hex."""
    context = span.context or SpanContext(0, 0, is_remote=False)
    return {
        "trace_id": format_trace_id(context.trace_id),
        "span_id": format_span_id(context.span_id),
        "parent_id": format_span_id(span.parent.span_id) if span.parent else None,
        "name": span.name,
        "service": span.resource.attributes.get("service.name"),
        "kind": span.kind.name.lower(),
        "start": _format_time(span.start_time),
        "end": _format_time(span.end_time),
        "attributes": dict(span.attributes or {}),
        "status": span.status.status_code.name.lower(),
        "links": [
            [format_trace_id(link.context.trace_id), format_span_id(link.context.span_id)]
            for link in span.links
        ],
    }


def _format_time(nanoseconds: int | None) -> str | None:
    if nanoseconds is None:
        return None
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)
    return moment.isoformat(timespec="microseconds")
