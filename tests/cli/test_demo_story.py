"""The demo's story is consistent, and its traces are drawn as trees."""

from __future__ import annotations

import re
import socket
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web
from rich.console import Console

from reverie.cli.demo.scenes import play_sample_day
from reverie.cli.demo.span_tree import TraceSpan, build_trace_tree, read_spans, service_names
from reverie.cli.demo.story import (
    SampleConversation,
    SampleStory,
    read_story,
    shift_conversations,
)
from reverie.contracts.problems import build_problem

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
BEGIN = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


@pytest.fixture(name="story")
def _story() -> SampleStory:
    return read_story()


def _page() -> Console:
    return Console(file=StringIO(), width=80, color_system=None)


def _printed(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def _span(
    sid: str, parent: str | None, name: str, at: float, took: float, service: str = "recall"
) -> TraceSpan:
    start = BEGIN + timedelta(milliseconds=at)
    return TraceSpan(
        trace_id=TRACE,
        span_id=sid,
        parent_id=parent,
        name=name,
        service=service,
        start=start,
        end=start + timedelta(milliseconds=took),
    )


def _drawn(spans: list[TraceSpan], rows: int = 24) -> list[str]:
    console = _page()
    console.print(build_trace_tree(spans, "POST /v1/remember", rows))
    return _printed(console).splitlines()


def test_a_trace_is_drawn_as_a_tree_with_services_and_milliseconds() -> None:
    lines = _drawn(
        [
            _span("a", "outside", "POST /v1/remember", 0, 9.3),
            _span("b", "a", "POST /v1/remember", 1, 7.5, "ingest"),
            _span("c", "b", "publish", 9, 1, "ingest"),
        ]
    )
    assert [line.rstrip() for line in lines] == [
        "POST /v1/remember",
        "└──     9.3 ms +0      recall    POST /v1/remember",
        "    └──     7.5 ms +1      ingest    POST /v1/remember",
        "        └──     1.0 ms +9      ingest    publish",
    ]


def test_similar_parallel_spans_are_one_line_and_long_traces_and_names_are_cut() -> None:
    root = _span("a", None, "recall", 0, 10)
    lines = _drawn([root, *(_span(f"q{n}", "a", "select posting", n, 0.5) for n in range(6))])
    assert len(lines) == 3
    assert "3.0 ms" in lines[2]
    assert "select posting ×6" in lines[2]
    # Those with children are never merged.
    pair = [_span("x", "a", "chunk", 1, 2), _span("y", "a", "chunk", 3, 2)]
    lines = _drawn([root, *pair, _span("z", "y", "embed", 3, 1)])
    assert sum("chunk" in line for line in lines) == 2
    assert lines[-1].startswith("        └──")
    many = [_span(f"s{n}", "a", f"step {n} " * 30, n, 1) for n in range(30)]
    lines = _drawn([root, *many], rows=10)
    assert len(lines) == 12
    assert "and 21 more" in lines[-1]
    assert max(map(len, lines)) <= 80


def test_whole_spans_are_collected_from_all_services_and_sorted(tmp_path: Path) -> None:
    later = _span("b", "a", "process", 20, 5, "ingest")
    first = _span("a", None, "POST", 0, 9)
    other = first.model_copy(update={"trace_id": "0" * 32, "span_id": "c"})
    written = later.model_dump_json()
    (tmp_path / "ingest.jsonl").write_text(f"{written}\n{written[: len(written) // 2]}")
    (tmp_path / "recall.jsonl.1").write_text(first.model_dump_json() + "\n")
    (tmp_path / "recall.jsonl").write_text(other.model_dump_json() + "\n")
    found = read_spans(tmp_path, TRACE)
    assert [span.span_id for span in found] == ["a", "b"]
    assert service_names(found) == ["recall", "ingest"]


def test_the_sample_secret_appears_whole_only_in_the_conversation(story: SampleStory) -> None:
    text = files("reverie.cli.demo").joinpath("day.json").read_text(encoding="utf-8")
    secret = [note for note in story.remember if note.secret]
    assert len(secret) == 1
    assert re.fullmatch(r"AKIA[0-9A-Z]{16}", secret[0].secret_text())
    assert secret[0].secret_text() not in text
    assert secret[0].secret_text() in secret[0].to_request().content


def test_the_conversations_are_shifted_so_that_they_have_just_ended(story: SampleStory) -> None:
    talks = shift_conversations(story.conversations, BEGIN)
    assert _last(talks) == BEGIN - timedelta(minutes=30)
    assert _gaps(talks) == _gaps(story.conversations)


async def test_a_missing_gateway_is_reported_as_a_failure_and_not_as_an_exception() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        console = _page()
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert await play_sample_day(url, "key", None, console, None) is False
    text = " ".join(_printed(console).split())
    assert f"The sample day stopped here. the gateway at {url} does not answer" in text


async def test_the_message_of_a_refusing_gateway_is_quoted() -> None:
    async def refuse(_: web.Request) -> web.Response:
        problem = build_problem("unauthenticated", "this key is not valid")
        return web.json_response(problem.model_dump(mode="json"), status=401)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        console = _page()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        assert await play_sample_day(url, "wrong", None, console, None) is False
    finally:
        await runner.cleanup()
    text = " ".join(_printed(console).split())
    assert "this key is not valid" in text


def _last(talks: list[SampleConversation]) -> datetime:
    return max(turn.at for talk in talks for turn in talk.turns if turn.at)


def _gaps(talks: list[SampleConversation]) -> list[timedelta]:
    times = [turn.at for talk in talks for turn in talk.turns if turn.at]
    return [later - earlier for earlier, later in pairwise(times)]
