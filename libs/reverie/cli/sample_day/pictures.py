"""Spans of one trace as a tree: which service did what, when, and how long it took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError
from rich.text import Text
from rich.tree import Tree

ROWS = 24
COLOURS = {"recall": "cyan", "ingest": "green", "dream": "magenta", "staleness": "yellow"}


class Span(BaseModel):
    """A finished span, as every service writes it into its spans file."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str
    service: str
    start: AwareDatetime
    end: AwareDatetime

    @property
    def millis(self) -> float:
        return (self.end - self.start).total_seconds() * 1000


def read_spans(folder: Path, trace_id: str) -> list[Span]:
    """The spans of a trace in all files of a folder, oldest first; half lines are skipped."""
    lines = (line for file in sorted(folder.iterdir()) if file.is_file() for line in _lines(file))
    spans = (_span(line) for line in lines if trace_id in line)
    unique = {span.span_id: span for span in spans if span and span.trace_id == trace_id}
    return sorted(unique.values(), key=lambda span: (span.start, span.span_id))


def services(spans: Iterable[Span]) -> list[str]:
    """The services that took part, in the order they came in."""
    return list(dict.fromkeys(span.service for span in spans))


def trace_tree(spans: Sequence[Span], title: str, rows: int = ROWS) -> Tree:
    """The spans as a tree of at most `rows` lines; like leaves side by side are one line."""
    tree = Tree(Text(title, style="bold"), guide_style="dim")
    known = {span.span_id for span in spans}
    roots = [span for span in spans if span.parent_id not in known]
    left = _grow(tree, roots, _children(spans), min(s.start for s in spans), rows) if spans else 0
    if left < 0:
        tree.add(Text(f"and {-left} more", style="dim"))
    return tree


def _grow(
    tree: Tree, spans: Sequence[Span], children: dict[str, list[Span]], zero: datetime, rows: int
) -> int:
    """Adds lines while `rows` are left; a negative answer counts the lines left out."""
    for group in _alike(spans, children):
        rows -= 1
        branch = tree.add(_line(group, zero)) if rows >= 0 else tree
        rows = _grow(branch, children.get(group[0].span_id, []), children, zero, rows)
    return rows


def _line(group: Sequence[Span], zero: datetime) -> Text:
    first, times = group[0], f" ×{len(group)}" if len(group) > 1 else ""
    line = Text(overflow="ellipsis", no_wrap=True)
    line.append(f"{sum(span.millis for span in group):7.1f} ms ", style="bold")
    line.append(f"+{(first.start - zero).total_seconds() * 1000:<6.0f} ", style="dim")
    line.append(f"{first.service:<9} ", style=COLOURS.get(first.service, "blue"))
    return line.append(f"{first.name}{times}")


def _alike(spans: Sequence[Span], children: dict[str, list[Span]]) -> Iterator[list[Span]]:
    """Spans in order, with runs of leaves of one name and service put together."""
    group: list[Span] = []
    for span in spans:
        like = group and (group[0].name, group[0].service) == (span.name, span.service)
        if like and not children.get(group[0].span_id) and not children.get(span.span_id):
            group.append(span)
            continue
        if group:
            yield group
        group = [span]
    if group:
        yield group


def _children(spans: Iterable[Span]) -> dict[str, list[Span]]:
    found: dict[str, list[Span]] = {}
    for span in spans:
        if span.parent_id:
            found.setdefault(span.parent_id, []).append(span)
    return found


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()


def _span(line: str) -> Span | None:
    try:
        return Span.model_validate_json(line)
    except ValidationError:
        return None
