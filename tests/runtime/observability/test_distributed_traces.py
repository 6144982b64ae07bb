"""One request is one trace, through outbox, bus and SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reverie.runtime.observability.tracing import export_spans
from reverie.runtime.settings.settings import Settings
from reverie.testing.servers import NatsServer
from tests.support.stack import Stack, eventually

Span = dict[str, Any]


@dataclass(frozen=True)
class Spans:
    """The finished spans of this process, as its file holds them."""

    file: Path

    def of(self, trace: str) -> list[Span]:
        """Those of one trace."""
        text = self.file.read_text() if self.file.exists() else ""
        # A line is whole once its end is there; the exporter may be writing the last one.
        lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [span for span in map(json.loads, lines) if span["trace_id"] == trace]

    async def when(self, trace: str, *names: str, outside: str | None = None) -> list[Span]:
        """The spans of a trace once these names and every parent but `outside` are there."""

        async def there() -> list[Span]:
            found = self.of(trace)
            ids = {span["span_id"] for span in found} | {outside}
            whole = all(span["parent_id"] in ids for span in found)
            return found if whole and set(names) <= {span["name"] for span in found} else []

        return await eventually(there, 100)


@pytest.fixture
def spans(tmp_path: Path) -> Any:
    """Exports the spans of all four services to one file."""
    file = tmp_path / "spans.jsonl"
    with export_spans(Settings(home=tmp_path, spans_file=file), "test"):
        yield Spans(file)


@pytest.fixture
def traced(spans: Spans, stack: Stack) -> tuple[Stack, Spans]:
    return stack, spans


def _chain(found: list[Span], leaf: Span) -> list[str]:
    """The names from a span up to the one without a parent in the trace."""
    by_id = {span["span_id"]: span for span in found}
    names = []
    at: Span | None = leaf
    while at is not None:
        names.append(at["name"])
        at = by_id.get(at["parent_id"])
    return names


def _only(found: list[Span], name: str, kind: str | None = None) -> Span:
    matching = [s for s in found if s["name"] == name and kind in (None, s["kind"])]
    assert len(matching) == 1, (name, [s["name"] for s in found])
    return matching[0]


def _check_whole(found: list[Span], failed: Sequence[str] = ()) -> None:
    """One root, every parent known, nobody failed but those named."""
    ids = {span["span_id"] for span in found}
    roots = [span for span in found if span["parent_id"] not in ids]
    assert [(span["parent_id"], span["kind"]) for span in roots] == [(None, "server")]
    assert [span["name"] for span in found if span["status"] == "error"] == list(failed)


SLOW_PATH = ("enrich", "sql derive", "ingest-enrich process")


def _check_remember(found: list[Span], tenant: str, failed: Sequence[str] = ()) -> None:
    _check_whole(found, failed)
    door = ["POST /v1/remember/*"] * 2
    server = ["POST /v1/remember", *door]
    assert _chain(found, _only(found, "POST /v1/remember")) == server
    written = ["sql remember", "upsert_memory", *server]
    assert _chain(found, _only(found, "sql remember")) == written
    events = {span["attributes"]["messaging.destination.name"] for span in _publishes(found)}
    assert events == {f"memory.{tenant}.remembered", f"memory.{tenant}.enriched"}
    consumed = ["ingest-enrich process", "upsert_memory", *server]
    assert _chain(found, _only(found, "ingest-enrich process", "consumer")) == consumed
    assert _chain(found, _only(found, "enrich")) == ["enrich", *consumed]
    for leaf in ("sql derive", "sql ensure_nodes"):
        assert _chain(found, _only(found, leaf)) == [leaf, "enrich", *consumed]


def _publishes(found: list[Span]) -> list[Span]:
    return [span for span in found if (span["name"], span["kind"]) == ("bus publish", "producer")]


REMEMBER = {"content": "Carts live in src/cart.py", "scope": "project/shop"}


async def test_a_memory_is_one_trace_from_the_gateway_to_its_vectors(
    traced: tuple[Stack, Spans],
) -> None:
    stack, spans = traced
    reply = await stack.call("POST", "/v1/remember", REMEMBER)
    found = await spans.when(reply.headers["X-Trace-Id"], "POST /v1/remember", *SLOW_PATH)
    _check_remember(found, stack.tenant)
    # The relay publishes it too, where it comes first.
    assert "upsert_memory" in {
        _chain(found, span)[1] for span in _publishes(found)
        if span["attributes"]["messaging.destination.name"] == f"memory.{stack.tenant}.remembered"
    }  # fmt: skip


async def test_the_trace_continues_when_the_event_went_through_the_relay(
    spans: Spans, alone: Stack, nats_server: NatsServer
) -> None:
    stack = alone
    nats_server.stop()
    reply = await stack.call("POST", "/v1/remember", REMEMBER)
    trace = reply.headers["X-Trace-Id"]
    await spans.when(trace, "bus publish")
    nats_server.start()
    wanted = ("POST /v1/remember", "enrich", "sql derive", "ingest-enrich process")
    found = await spans.when(trace, *wanted)
    _check_remember(found, stack.tenant, failed=["bus publish"])


async def test_a_session_end_is_one_trace_from_the_gateway_to_the_summary(
    traced: tuple[Stack, Spans],
) -> None:
    stack, spans = traced
    start = {"agent": "claude", "project": "shop"}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    turns = [{"role": "user", "content": "Remember: money is integer cents, never floats."}]
    await stack.post("/v1/turns", {"session": session, "turns": turns})
    reply = await stack.call("POST", f"/v1/sessions/{session}/end", {})
    trace = reply.headers["X-Trace-Id"]
    in_bulk = [name.replace("ingest-enrich", "ingest-enrich-bulk") for name in SLOW_PATH]
    wanted = ("dream", "dream-workers process", "sql dream_finish", *in_bulk)
    found = await spans.when(trace, *wanted)
    _check_whole(found)
    server = ["POST /v1/sessions/{id}/end", *["POST /v1/sessions/*"] * 2]
    worker = ["dream-workers process", *server]
    assert _chain(found, _only(found, "sql dream_request")) == ["sql dream_request", *server]
    assert _chain(found, _only(found, "dream")) == ["dream", *worker]
    digest = ["digest session", "dream", *worker]
    assert _chain(found, _only(found, "digest session")) == digest
    assert _chain(found, _only(found, "sql dream_commit")) == ["sql dream_commit", *digest]
    assert _chain(found, _only(found, "sql put_summary"))[1:] == ["dream", *worker]
    enriched = [span for span in found if span["name"] == "enrich"]
    assert enriched
    for span in enriched:
        assert _chain(found, span) == ["enrich", "ingest-enrich-bulk process", *digest]


async def test_a_git_change_is_one_trace_from_the_gateway_to_the_marks(
    traced: tuple[Stack, Spans],
) -> None:
    stack, spans = traced
    await stack.post("/v1/remember", REMEMBER)
    change = {
        "project": "shop",
        "branch": "main",
        "after": "f" * 40,
        "commits": [{"sha": "f" * 40, "committed_at": "2099-01-01T00:00:00Z"}],
        "files": [{"path": "src/cart.py", "status": "deleted"}],
    }
    reply = await stack.call("POST", "/v1/git/changes", change)
    found = await spans.when(
        reply.headers["X-Trace-Id"], "apply change", "sql change_mark_processed"
    )
    server = ["POST /v1/git/changes", *["POST /v1/git/*"] * 2]
    consumed = ["staleness-changes process", *server]
    assert _chain(found, _only(found, "apply change")) == ["apply change", *consumed]
    assert _chain(found, _only(found, "sql change_mark_processed")) == [
        "sql change_mark_processed", "apply change", *consumed
    ]  # fmt: skip


async def test_a_callers_own_trace_is_continued_and_no_span_contains_content(
    traced: tuple[Stack, Spans],
) -> None:
    stack, spans = traced
    written = await stack.call("POST", "/v1/remember", REMEMBER)
    trace, parent = "a" * 31 + "1", "b" * 15 + "1"
    headers = {"traceparent": f"00-{trace}-{parent}-01"}
    reply = await stack.call("POST", "/v1/recall", {"query": "carts"}, headers=headers)
    assert (reply.headers["X-Trace-Id"], reply.body["trace_id"]) == (trace, trace)
    found = await spans.when(trace, "POST /v1/recall", "sql search_words", outside=parent)
    assert _only(found, "POST /v1/recall")["parent_id"] == parent
    assert _chain(found, _only(found, "sql search_words")) == [
        "sql search_words", "recall words", "search_memory", "POST /v1/recall"
    ]  # fmt: skip

    await spans.when(written.headers["X-Trace-Id"], *SLOW_PATH)
    exported = spans.file.read_text()
    for text in ("Carts live", '"carts"', stack.key):
        assert text not in exported
