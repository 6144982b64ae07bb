"""Draws one trace over all four services into docs/pictures/trace.svg.

`python -m benchmarks.trace_picture` runs `reverie up` on a fresh folder with `otlp_endpoint` set,
does what an agent does around a turn and a push, and draws the spans that the four processes and
the agent itself exported over OTLP.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.support.common import parser
from reverie.runtime.observability.tracing import export_spans, span, trace_headers
from reverie.runtime.settings.settings import Settings
from tests.support.reverie_up import ANY_PORT, Up
from tests.support.stack import eventually

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "trace.svg"
COLOURS = {
    "agent": "#57606a",
    "recall": "#0969da",
    "ingest": "#1a7f37",
    "dream": "#8250df",
    "staleness": "#bc4c00",
}
WIDTH, LABEL, ROW, TOP = 1000, 270, 17, 76
"""Pixels: of the whole, of the names, of a line, above the first."""
SHA = "c0" * 20
TURN = "Remember: money is kept in integer cents, never in floats."


@dataclass(frozen=True)
class CollectedSpan:
    """A span as it came: times in milliseconds."""

    id: str
    parent: str
    service: str
    name: str
    start: float
    end: float


@dataclass
class Collector:
    """Takes OTLP over HTTP, as a collector does."""

    spans: list[tuple[str, CollectedSpan]] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        """`POST /v1/traces`."""
        sent = ExportTraceServiceRequest.FromString(await request.read())
        for resource in sent.resource_spans:
            named = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [_span(named["service.name"], one) for one in scope.spans]
        return web.Response()

    def of(self, trace: str) -> list[CollectedSpan]:
        """The spans of one trace, the earliest first."""
        return sorted((one for known, one in self.spans if known == trace), key=lambda s: s.start)


def _span(service: str, one: Any) -> tuple[str, CollectedSpan]:
    times = (one.start_time_unix_nano / 1e6, one.end_time_unix_nano / 1e6)
    seen = CollectedSpan(one.span_id.hex(), one.parent_span_id.hex(), service, one.name, *times)
    return one.trace_id.hex(), seen


async def collected() -> list[CollectedSpan]:
    """The spans of an agent's turn and push, from all four services."""
    collector = Collector()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/traces", collector.take)
    with tempfile.TemporaryDirectory(prefix="reverie-trace-") as folder:
        async with TestServer(app) as server:
            address = f"http://127.0.0.1:{server.port}"
            async with _running(Path(folder) / "home", address) as up:
                told = await asyncio.to_thread(up.ready)
                key = await asyncio.to_thread(Path(told["key_file"]).read_text)
                settings = Settings(home=Path(folder), otlp_endpoint=address)
                with export_spans(settings, "agent"):
                    trace = await _agent(told["gateway"], key.strip())
                await eventually(lambda: _whole(collector, trace))
        return collector.of(trace)


@asynccontextmanager
async def _running(home: Path, address: str) -> AsyncIterator[Up]:
    up = Up(home, *ANY_PORT, "--set", f"otlp_endpoint={address}", "--set", "outbox_sweep_after=0.5")
    try:
        yield up
    finally:
        # Beside the loop, so that the last spans are taken.
        await asyncio.to_thread(up.clean_up)


async def _whole(collector: Collector, trace: str) -> bool:
    """Whether every service was heard, and nobody's parent is missing."""
    found = collector.of(trace)
    ids = {one.id for one in found}
    done = {"enrich", "dream", "apply change"} <= {one.name for one in found}
    return (
        done
        and {one.service for one in found} == set(COLOURS)
        and all(one.parent in ids or not one.parent for one in found)
    )


async def _agent(gateway: str, key: str) -> str:
    """What an agent does; the trace of it."""
    async with aiohttp.ClientSession(gateway) as http:

        async def call(method: str, path: str, body: Any = None, traced: bool = True) -> Any:
            headers = {"Authorization": f"Bearer {key}", **(trace_headers() if traced else {})}
            async with http.request(method, path, json=body, headers=headers) as answer:
                assert answer.status < 300, await answer.text()
                return await answer.json()

        async def settled() -> bool:
            """The slow path is through: a recall finds the memory by its meaning."""
            found = await call("POST", "/v1/recall", {"query": "where do carts live"}, False)
            return any("meaning" in one["arms"] for one in found["memories"])

        async def stale() -> bool:
            return bool((await call("GET", "/v1/stale?project=shop", traced=False))["items"])

        start = {"agent": "claude", "project": "shop"}
        session = (await call("POST", "/v1/sessions/start", start, False))["session"]
        with span("agent: a turn, a push") as current:
            memory = {"content": "Carts live in src/cart.py", "scope": "project/shop"}
            await call("POST", "/v1/remember", memory)
            turns = {"session": session, "turns": [{"role": "user", "content": TURN}]}
            await call("POST", "/v1/turns", turns)
            await eventually(settled)
            await call("POST", "/v1/recall", {"query": "where do carts live"})
            await call("POST", f"/v1/sessions/{session}/end", {})
            await call("POST", "/v1/git/changes", _change())
            await eventually(stale)
            return f"{current.get_span_context().trace_id:032x}"


def _change() -> dict[str, Any]:
    return {
        "project": "shop",
        "branch": "main",
        "after": SHA,
        "commits": [{"sha": SHA, "committed_at": "2099-01-01T00:00:00Z"}],
        "files": [{"path": "src/cart.py", "status": "modified"}],
    }


def drawn(spans: Sequence[CollectedSpan]) -> str:
    """The spans as a waterfall; statements are strokes on the line of what made them."""
    began, ended = min(one.start for one in spans), max(one.end for one in spans)
    lines = [(one, depth) for one, depth in _in_order(spans) if not _is_sql(one)]
    height = TOP + ROW * len(lines) + 10
    scale = (WIDTH - LABEL - 70) / (ended - began)

    def x(at: float) -> float:
        return LABEL + (at - began) * scale

    parts = [_head(height), *_services(spans), *_axis(ended - began, scale, height)]
    places = {one.id: row for row, (one, _) in enumerate(lines)}
    for row, (one, depth) in enumerate(lines):
        parts += _line(one, depth, TOP + row * ROW, x)
    for one in spans:
        if _is_sql(one) and one.parent in places:
            y = TOP + places[one.parent] * ROW
            width = max((one.end - one.start) * scale, 0.7)
            parts.append(
                f'<rect x="{x(one.start):.1f}" y="{y + 9}" width="{width:.1f}" height="4"'
                ' fill="#1f2328" opacity=".55"/>'
            )
    return "\n".join([*parts, "</svg>\n"])


def _in_order(spans: Sequence[CollectedSpan]) -> Iterator[tuple[CollectedSpan, int]]:
    """Each span below what made it, with its depth."""
    ids = {one.id for one in spans}
    below: dict[str, list[CollectedSpan]] = {}
    for one in spans:
        below.setdefault(one.parent if one.parent in ids else "", []).append(one)

    def walk(parent: str, depth: int) -> Iterator[tuple[CollectedSpan, int]]:
        for one in below.get(parent, ()):
            yield one, depth
            yield from walk(one.id, depth + 1)

    return walk("", 0)


def _is_sql(one: CollectedSpan) -> bool:
    return one.name.startswith("sql ")


def _head(height: int) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" role="img"'
        ' aria-label="One trace over the four services" font-family="sans-serif" font-size="11">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n'
        '<text x="12" y="22" font-size="15" font-weight="bold" fill="#1f2328">'
        "One trace: an agent remembers, recalls, ends its session, pushes a commit</text>"
    )


def _services(spans: Sequence[CollectedSpan]) -> Iterator[str]:
    counts = {name: sum(one.service == name for one in spans) for name in COLOURS}
    x = 12
    for name, count in counts.items():
        text = f"{name} ({count})"
        yield f'<rect x="{x}" y="33" width="11" height="11" rx="2" fill="{COLOURS[name]}"/>'
        yield f'<text x="{x + 16}" y="43" fill="#1f2328">{text}</text>'
        x += 34 + 7 * len(text)
    yield f'<rect x="{x}" y="37" width="11" height="4" fill="#1f2328" opacity=".55"/>'
    yield f'<text x="{x + 16}" y="43" fill="#1f2328">statements of SQL</text>'


def _axis(whole: float, scale: float, height: int) -> Iterator[str]:
    step = next(s for s in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if whole / s < 9)
    for at in range(0, int(whole) + 1, step):
        x = LABEL + at * scale
        yield f'<line x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{height - 8}" stroke="#d8dee4"/>'
        yield f'<text x="{x:.1f}" y="{TOP - 7}" fill="#57606a" text-anchor="middle">{at} ms</text>'


def _line(one: CollectedSpan, depth: int, y: int, x: Any) -> Iterator[str]:
    left, width = x(one.start), max(x(one.end) - x(one.start), 1.5)
    colour = COLOURS[one.service]
    name = one.name if len(one.name) < 50 else one.name[:48] + "…"
    took = f"{one.end - one.start:.0f} ms" if one.end - one.start >= 1 else "under 1 ms"
    yield (
        f'<text x="{12 + depth * 11}" y="{y + 11}" fill="{colour}">{escape(name)}</text>'
        f'<rect x="{left:.1f}" y="{y + 2}" width="{width:.1f}" height="12" rx="2"'
        f' fill="{colour}" opacity=".8"/>'
        f'<text x="{left + width + 4:.1f}" y="{y + 11}" fill="#57606a" font-size="9">{took}</text>'
    )


def main() -> None:
    """Writes the picture; says what it shows."""
    spans = asyncio.run(collected())
    PICTURE.write_text(drawn(spans))
    services = sorted({one.service for one in spans})
    sys.stdout.write(f"{PICTURE}: {len(spans)} spans of {', '.join(services)}\n")


if __name__ == "__main__":
    parser(__doc__).parse_args()
    main()
