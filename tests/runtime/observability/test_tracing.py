"""Span export, cleaning of attributes, the bounded span file and trace headers."""

from __future__ import annotations

import json
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, TraceFlags

from reverie.runtime.observability.span_file import SpanFileExporter
from reverie.runtime.observability.tracing import (
    current_trace_id,
    export_spans,
    extract_context,
    span,
    trace_headers,
)
from reverie.runtime.settings.settings import Settings

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def finished(number: int, padding: int = 0) -> ReadableSpan:
    context = SpanContext(number, number, is_remote=False, trace_flags=TraceFlags(1))
    return ReadableSpan(
        f"span {number}", context, attributes={"x": "y" * padding}, start_time=0, end_time=1
    )


def test_spans_of_a_trace_are_in_the_file_with_their_parents(tmp_path: Path) -> None:
    path = tmp_path / "new" / "spans.jsonl"
    with export_spans(Settings(spans_file=path), "test"), span("outer", size=3), span("inner"):
        pass
    inner, outer = records(path)
    assert (outer["name"], inner["name"]) == ("outer", "inner")
    assert inner["parent_id"] == outer["span_id"]
    assert inner["trace_id"] == outer["trace_id"]
    assert outer["parent_id"] is None
    assert outer["attributes"] == {"size": 3}
    assert outer["start"] <= inner["start"] <= inner["end"] <= outer["end"]
    assert path.stat().st_mode & 0o077 == 0


def test_a_failed_span_names_only_the_class_of_the_error(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    with (
        export_spans(Settings(spans_file=path), "test"),
        pytest.raises(ValueError, match="hunter2"),
        span("work"),
    ):
        raise ValueError("hunter2")
    (record,) = records(path)
    assert (record["status"], record["attributes"]["error.type"]) == ("error", "ValueError")
    assert "hunter2" not in path.read_text()


def test_attributes_are_redacted_before_export(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"

    def redact(text: str) -> str:
        return text.replace("hunter2", "[gone]")

    with (
        export_spans(Settings(spans_file=path), "test", redact),
        span("work", url="nats://u:p@h") as one,
    ):
        one.set_attribute("one", "hunter2")
        one.set_attribute("many", ["hunter2", "b"])
    (record,) = records(path)
    assert record["attributes"] == {
        "url": "nats://u:***@h",
        "one": "[gone]",
        "many": ["[gone]", "b"],
    }


def test_the_file_is_rotated_at_its_limit_and_never_exceeds_it(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    file = SpanFileExporter(path, limit=2000)
    for number in range(1, 40):
        file.export([finished(number)])
        assert path.stat().st_size <= 2000
    older = path.with_name("spans.jsonl.1")
    assert older.stat().st_size <= 2000
    names = [record["name"] for record in records(older) + records(path)]
    assert names[-1] == "span 39"
    assert names == [f"span {n}" for n in range(40 - len(names), 40)]
    assert {one.name for one in tmp_path.iterdir()} == {"spans.jsonl", "spans.jsonl.1"}


def test_a_span_larger_than_the_limit_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    SpanFileExporter(path, limit=1024).export([finished(1, padding=5000)])
    assert len(records(path)) == 1


def _write_many(path: Path, start: int) -> None:
    file = SpanFileExporter(path, limit=20_000)
    for number in range(start, start + 100):
        file.export([finished(number)])


def test_two_processes_share_the_file_without_torn_lines(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    context = get_context("spawn")
    writer = context.Process(target=_write_many, args=(path, 1))
    writer.start()
    while not path.exists():
        time.sleep(0.01)
    _write_many(path, 1001)
    writer.join()
    assert writer.exitcode == 0
    older = path.with_name("spans.jsonl.1")
    for file in (older, path):
        assert file.stat().st_size <= 20_000
        assert all(record["name"].startswith("span ") for record in records(file))


def test_without_a_file_that_can_be_written_requests_still_carry_a_trace(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for spans_file in (None, tmp_path / "file" / "spans.jsonl"):
        with export_spans(Settings(spans_file=spans_file), "test"), span("work"):
            headers, trace_id = trace_headers(), current_trace_id()
        context = trace.get_current_span(extract_context(headers)).get_span_context()
        assert trace_id == trace.format_trace_id(context.trace_id) != "0" * 32
    assert current_trace_id() is None


@pytest.mark.parametrize(
    "headers",
    [{}, {"traceparent": ""}, {"traceparent": "x"}, {"traceparent": f"00-{TRACE_ID}-0-01"}],
)
def test_broken_headers_propagate_nothing(headers: dict[str, str]) -> None:
    assert not trace.get_current_span(extract_context(headers)).get_span_context().is_valid
