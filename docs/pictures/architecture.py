"""Draws the services, what they exchange, and the two servers, as architecture.svg.

Run from the root of the project: `make pictures`. Services and ports come from the settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from svg import SANS, document, element, text

from reverie.runtime.settings.settings import ServiceName, Settings

PICTURE = Path(__file__).with_name("architecture.svg")
WIDTH, HEIGHT = 920, 560
INK, SOFT, LINE, EDGE, BOX, BACK = "#1f2328", "#59636e", "#848d97", "#d1d9e0", "#ffffff", "#f6f8fa"
SERVICES = {
    "recall": ("#0969da", ("the gateway: recall and context; forwards writes to the others",)),
    "ingest": ("#1a7f37", ("redacts and stores, then", "chunks, embeds and links")),
    "dream": ("#8250df", ("digests conversations", "and maintains the graph")),
    "staleness": ("#bc4c00", ("marks the memories that", "a commit made stale")),
}


def box(x: int, y: int, width: int, height: int, *, name: str, lines: tuple[str, ...],
        colour: str | None = None, detail: str = "") -> list[str]:  # fmt: skip
    """A box with a name, some lines below it, and a coloured bar at its left."""
    left = x + 24 if colour else x + width / 2
    anchor = "start" if colour else "middle"
    parts = [
        element("rect", x=x, y=y, width=width, height=height, rx=10, fill=BOX, stroke=EDGE,
                stroke_width=1.5),
        text(name, left, y + 29, 18, INK, font_weight=600, text_anchor=anchor),
    ]  # fmt: skip
    if colour:
        bar = {"x": x, "y": y + 13, "width": 5, "height": height - 26, "rx": 2.5}
        parts.append(element("rect", fill=colour, **bar))
        parts.append(text(detail, x + width - 20, y + 29, 12.5, SOFT, text_anchor="end"))
    for row, line in enumerate(lines):
        parts.append(text(line, left, y + 52 + 19 * row, 13.5, SOFT, text_anchor=anchor))
    return parts


def arrow(x: int, top: int, bottom: int, label: str = "", *, both: bool = False) -> list[str]:
    """A downward arrow with a label beside it; its heads are plain shapes."""
    heads = [f"M{x - 5} {bottom - 10} L{x} {bottom} L{x + 5} {bottom - 10} Z"]
    if both:
        heads.append(f"M{x - 5} {top + 10} L{x} {top} L{x + 5} {top + 10} Z")
    return [
        element("path", d=f"M{x} {top} V{bottom - 4}", stroke=LINE, stroke_width=1.75, fill="none"),
        *(element("path", d=head, fill=LINE) for head in heads),
        *([text(label, x + 12, (top + bottom) / 2 + 4, 12.5, SOFT)] if label else []),
    ]


def draw() -> str:
    """The whole picture."""
    assert set(SERVICES) == set(get_args(ServiceName))
    settings = Settings()
    ports = {name: f"port {getattr(settings, f'{name}_port')}" for name in SERVICES}
    body = [
        element("rect", width=WIDTH, height=HEIGHT, rx=12, fill=BACK),
        *box(130, 24, 320, 70, name="coding agents",
             lines=("recall before a turn, hand it over after it",)),
        *box(510, 24, 280, 70, name="CI, git hooks, webhooks", lines=("announce commits",)),
        element("rect", x=16, y=128, width=888, height=252, rx=14, fill="none", stroke=EDGE,
                stroke_width=1.5, stroke_dasharray="5 5"),
        *arrow(290, 94, 142, "HTTP, MCP, gRPC: one address, one key"),
        *arrow(650, 94, 142),
    ]  # fmt: skip
    colour, lines = SERVICES["recall"]
    body += box(30, 142, 860, 74, name="recall", lines=lines, colour=colour, detail=ports["recall"])
    calls = {"ingest": "memories, turns", "dream": "dream requests", "staleness": "git changes"}
    for column, (name, label) in enumerate(calls.items()):
        colour, lines = SERVICES[name]
        x = 30 + 300 * column
        body += arrow(x + 130, 216, 266, label)
        body += box(x, 266, 260, 94, name=name, lines=lines, colour=colour, detail=ports[name])
    body += [
        *arrow(245, 380, 426, "events and jobs: ingest, dream, staleness", both=True),
        *arrow(690, 380, 426, "SQL: all four"),
        *box(30, 426, 430, 86, name="NATS JetStream", colour="#57606a",
             lines=("events, dream tickets, dead letters;", "writes go on while it is down")),
        *box(490, 426, 400, 86, name="Postgres with pgvector", colour="#57606a",
             lines=("memories, words, vectors, turns, outbox;", "row-level security per tenant")),
        text("reverie up runs all of it on one machine; in production each service is a process of "
             "its own", WIDTH / 2, 542, 13.5, SOFT, text_anchor="middle"),
    ]  # fmt: skip
    title = (
        "Agents and CI talk to recall, the gateway; ingest, dream and staleness do the work; "
        "NATS carries events, Postgres holds what lasts"
    )
    return document(WIDTH, HEIGHT, title, SANS, body)


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
