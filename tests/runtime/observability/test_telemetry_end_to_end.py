"""Traces, metrics and logs of a run through every interface."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from rich.console import Console

from reverie.bus.streams import CONSUMERS
from reverie.cli.operate.component_status import ComponentStatus
from reverie.cli.operate.doctor.service_checks import find_backlog_problems
from reverie.cli.operate.service_metrics import MetricsSnapshot, compute_rates, scrape, scrape_all
from reverie.cli.operate.status_watch import render_status
from reverie.embedded.ports import find_free_port
from reverie.runtime.observability.logs import configure_logs
from reverie.runtime.observability.tracing import export_spans
from reverie.runtime.settings.settings import Settings
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.runtime.observability.sample_traffic import CONTENT, QUESTION, TURN, Tour, tour
from tests.support.log_capture import restored_logging
from tests.support.prometheus import Prometheus, is_there, queries, scraping
from tests.support.stack import Stack, eventually, running_stack
from tests.support.stub_llm import stub_llm

DEPLOY = Path(__file__).parents[3] / "deploy"
ALERTS, BOARDS = DEPLOY / "alerts" / "reverie.yml", DEPLOY / "dashboards"
TOLD = {
    "kind": "convention",
    "content": "The orchard counts its quinces in crates, never in sacks.",
    "turns": [1],
    "priority": 0.9,
}
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


@dataclass(frozen=True)
class Seen:
    """A system after its tour, with the file of its spans."""

    stack: Stack
    tour: Tour
    spans: Path
    logs: io.StringIO
    prometheus: Prometheus | None

    def of(self, trace: str) -> list[dict[str, Any]]:
        """The spans of one trace, as far as they are whole in the file."""
        lines = self.spans.read_text().splitlines(keepends=True)
        whole = [json.loads(line) for line in lines if line.endswith("\n")]
        return [span for span in whole if span["trace_id"] == trace]


@pytest.fixture
async def seen(database: DatabaseUrls, nats_url: str, tmp_path: Path) -> AsyncIterator[Seen]:
    file, port = tmp_path / "spans.jsonl", find_free_port()
    async with AsyncExitStack() as opened:
        settings = Settings(home=tmp_path, spans_file=file, log_level="debug", log_format="json")
        opened.enter_context(export_spans(settings, "test"))
        logs = opened.enter_context(_logged(settings))
        stub, model = await opened.enter_async_context(stub_llm())
        stub.answer = lambda _: {"memories": [TOLD]}
        options = {
            "grpc_enabled": True,
            "grpc_port": port,
            "llm_provider": "openai",
            "llm_url": f"{model}/v1",
            "llm_model": "stub",
        }
        running = running_stack(database, nats_url, model_home(), **options)
        stack = await opened.enter_async_context(running)
        jobs = {f"reverie-{name}": url for name, url in stack.urls.items()}
        prometheus = None
        if is_there("prometheus"):
            prometheus = await opened.enter_async_context(scraping(tmp_path, jobs, ALERTS))
        yield Seen(stack, await tour(stack, port), file, logs, prometheus)


@contextmanager
def _logged(settings: Settings) -> Iterator[io.StringIO]:
    """The log lines of this process, down to the least grave."""
    with restored_logging() as lines:
        configure_logs(settings, "test", stream=lines)
        yield lines


async def test_telemetry_covers_a_run_through_every_interface(seen: Seen) -> None:
    await _traces_go_through_every_door(seen)
    scraped = await eventually(partial(_scraped_with_the_dream, seen.stack))
    _histograms_name_traces(seen, scraped)
    _doors_and_pools_are_counted(scraped)
    _logs_name_tenants_and_traces_and_quote_nothing(seen)
    await _the_live_table_shows_what_goes_on(seen)
    _queries_name_what_is_told(scraped)
    if seen.prometheus is not None:
        await _every_panel_is_answered(seen.prometheus)
        await _every_alert_can_be_told(seen.prometheus)


async def _traces_go_through_every_door(seen: Seen) -> None:
    callers = (("grpc", "grpc Recall", "b" * 15 + "1"), ("mcp", "tools/call recall", None))
    for door, call, parent in callers:
        whole = ("POST /v1/recall", "search_memory", "sql answer_memories", call)
        found = await eventually(partial(_with, seen, door, *whole))
        by_id = {span["span_id"]: span for span in found}
        [outer] = [s for s in found if s["name"] == call and s["kind"] == "server"]
        assert (outer["kind"], outer["status"]) == ("server", "unset"), outer
        if parent:
            assert outer["parent_id"] == parent
        [own] = [span for span in found if span["name"] == "POST /v1/recall"]
        assert by_id[own["parent_id"]]["name"] == call


async def _with(seen: Seen, door: str, *names: str) -> list[dict[str, Any]]:
    found = seen.of(seen.tour.traces[door])
    return found if set(names) <= {span["name"] for span in found} else []


async def _scraped(stack: Stack) -> list[Sample]:
    """Every sample in the expositions of the four services."""
    found: list[Sample] = []
    for url in stack.urls.values():
        async with stack.http.get(url + "/metrics", headers=OPENMETRICS) as answer:
            assert answer.content_type == "application/openmetrics-text"
            families = text_string_to_metric_families(await answer.text())  # type: ignore[no-untyped-call]
            found += [sample for family in families for sample in family.samples]
    return found


async def _the_live_table_shows_what_goes_on(seen: Seen) -> None:
    urls = seen.stack.urls
    parts = [ComponentStatus(name, url, True) for name, url in urls.items()]
    before = await asyncio.to_thread(scrape_all, urls)
    await seen.stack.post("/v1/recall", {"query": QUESTION})
    now = await asyncio.to_thread(scrape_all, urls)
    went = compute_rates(before["recall"], now["recall"])
    assert went is not None
    assert went.requests > 0
    assert went.failed == 0
    assert went.p95 is not None
    settings = Settings(home=seen.spans.parent)
    console = Console(file=io.StringIO(), width=140)
    console.print(render_status(settings, True, parts, before, now))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert re.search(r"recall +ready +\d+\.\d +0 +[\d.]+ ms +\d+ of 16 +\d+ MB", shown), shown
    assert re.search(r"dead letters +0", shown)
    assert re.search(r"messages for dream-workers +\d", shown)
    assert "None" not in shown
    console.print(render_status(settings, False, [], {}, {}))
    assert "is not running" in console.file.getvalue()  # type: ignore[attr-defined]
    assert compute_rates(MetricsSnapshot(), now["recall"]) is None
    assert not scrape("http://127.0.0.1:1").values
    bad = MetricsSnapshot({("reverie_dead_letters", frozenset()): 2.0,
                  ("reverie_outbox_oldest_seconds", frozenset()): 500.0,
                  ("reverie_model_loaded", frozenset({("model", "bge")})): 0.0})  # fmt: skip
    found = {(one.level, one.message) for one in find_backlog_problems({"ingest": bad})}
    assert found == {
        ("warning", "2 dead letters"),
        ("error", "an event has waited 500 s to be published"),
        ("warning", "ingest works without bge"),
    }
    assert not list(find_backlog_problems(now))


def _logs_name_tenants_and_traces_and_quote_nothing(seen: Seen) -> None:
    """No redaction is on here: what is not in the lines was never given to the log."""
    text = seen.logs.getvalue()
    for said in (CONTENT, QUESTION, TURN, "quinces", seen.stack.key):
        assert said not in text, said
    lines = [json.loads(line) for line in text.splitlines()]
    answered = [line for line in lines if line["event"] == "request_answered"]
    assert len(answered) > 30
    assert all(len(line["trace_id"]) == 32 for line in answered)
    with_key = [line for line in answered if line["route"] in {"/v1/recall", "/v1/turns"}]
    assert {line["tenant"] for line in with_key} == {"default"}
    # A call that the gateway passes on is told twice under its trace, both times with its tenant.
    passed = {line["trace_id"] for line in with_key if line["route"] == "/v1/turns"}
    told = [(line["trace_id"], line.get("tenant")) for line in answered]
    assert passed
    assert all(told.count((trace, "default")) >= 2 for trace in passed)
    assert set(seen.tour.traces.values()) - {seen.tour.traces["mcp"]} <= {
        line["trace_id"] for line in answered
    }
    bussed = [line for line in lines if "consumer" in line and "trace_id" in line]
    assert bussed
    assert {line["tenant"] for line in bussed} == {"default"}


async def _scraped_with_the_dream(stack: Stack) -> list[Sample]:
    """What is told once the dream is counted, which is a moment after it is done."""
    scraped = await _scraped(stack)
    dreamt = [one for one in scraped if one.name == "reverie_dream_seconds_bucket"]
    return scraped if any(one.exemplar for one in dreamt) else []


def _histograms_name_traces(seen: Seen, scraped: list[Sample]) -> None:
    named = {(one.name, one.exemplar.labels["trace_id"]) for one in scraped if one.exemplar}
    assert ("reverie_grpc_call_seconds_bucket", seen.tour.traces["grpc"]) in named
    assert ("reverie_mcp_call_seconds_bucket", seen.tour.traces["mcp"]) in named
    traces = set(seen.tour.traces.values())
    for name in ("http_request", "http_client", "bus_message", "recall_stage", "dream", "llm_call"):
        found = {trace for told, trace in named if told == f"reverie_{name}_seconds_bucket"}
        assert found & traces, name


def _doors_and_pools_are_counted(scraped: list[Sample]) -> None:
    assert _sum(scraped, "reverie_grpc_calls_total", call="Recall", code="ok") == 1
    assert _sum(scraped, "reverie_grpc_calls_total", call="GetMemory", code="INVALID_ARGUMENT") == 1
    assert _sum(scraped, "reverie_mcp_calls_total", call="recall", code="ok") == 1
    assert _sum(scraped, "reverie_mcp_calls_total", call="history", code="invalid") == 1
    assert _sum(scraped, "reverie_reads_total", kind="recall") == 3
    assert _sum(scraped, "reverie_reads_total") == 5
    assert {one.labels["pool"] for one in scraped if one.name == "reverie_postgres_failures_total"}
    assert _sum(scraped, "reverie_postgres_connections_limit", pool="main") == 4 * 8
    assert _sum(scraped, "reverie_bus_connected") == 3
    assert _sum(scraped, "reverie_http_client_in_flight") == 0
    assert _sum(scraped, "reverie_model_batch_texts_sum") > 0
    assert _sum(scraped, "reverie_model_tokens_total") > 0
    assert _sum(scraped, "reverie_bus_messages_total", consumer="dream-workers", outcome="done") > 0
    lags = {one.labels["consumer"] for one in scraped if one.name == "reverie_bus_lag"}
    assert lags == {spec.name for spec in CONSUMERS}


def _sum(scraped: list[Sample], name: str, **labels: str) -> float:
    values = [
        one.value for one in scraped if one.name == name and labels.items() <= one.labels.items()
    ]
    assert values, name
    return sum(values)


def _dashboard_queries() -> list[str]:
    boards = [json.loads(path.read_text()) for path in sorted(BOARDS.glob("*.json"))]
    return [query for board in boards for query in queries(board)]


def _rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _queries_name_what_is_told(scraped: list[Sample]) -> None:
    """Each metric and label that is asked for is there; job and instance are of the scrape."""
    labels: dict[str, set[str]] = {"up": set()}
    for one in scraped:
        labels.setdefault(one.name, {"job", "instance"}).update(one.labels)
    for query in [*_dashboard_queries(), *(rule["expr"] for rule in _rules())]:
        names = set(re.findall(r"\b(?:reverie|process)_\w+", query))
        assert names <= labels.keys(), query
        grouped = re.findall(r"\bby \(([^)]*)\)", query)
        wanted = {label.strip() for group in grouped for label in group.split(",")}
        wanted |= set(re.findall(r"[{,](\w+)(?:=~|!~|!=|=)", query))
        assert wanted <= set().union({"job", "instance"}, *(labels[name] for name in names)), query


async def _every_panel_is_answered(prometheus: Prometheus) -> None:
    asked = _dashboard_queries()
    assert len(asked) > 60

    async def unanswered() -> list[str]:
        return [query for query in asked if not await prometheus.ask(query)]

    async def all_are() -> bool:
        return not await unanswered()

    # A rate is told from the second scrape on.
    with suppress(TimeoutError):
        await eventually(all_are, seconds=60, pause=0.5)
    assert await unanswered() == []


async def _every_alert_can_be_told(prometheus: Prometheus) -> None:
    """Without its last comparison an alert's expression gives what it would compare."""
    for rule in _rules():
        measured, *_ = re.split(r"\s(>|==)\s(?=\S+$)", rule["expr"].strip())
        assert await prometheus.ask(measured), rule["alert"]
    assert await prometheus.exemplars("reverie_mcp_call_seconds_bucket")
