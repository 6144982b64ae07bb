"""Renders the spans of one trace as a tree: service, start and duration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError
from rich.text import Text
from rich.tree import Tree

MAX_ROWS = 24
COLOURS = {"recall": "cyan", "ingest": "green", "dream": "magenta", "staleness": "yellow"}


class TraceSpan(BaseModel):
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
    def duration_ms(self) -> float:
        return (self.end - self.start).total_seconds() * 1000


def read_spans(folder: Path, trace_id: str) -> list[TraceSpan]:
    """The spans of a trace in all files of a folder, oldest first; half lines are skipped."""
    unique: dict[str, TraceSpan] = {}
    for file in filter(Path.is_file, sorted(folder.iterdir())):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if trace_id not in line:
                continue
            with suppress(ValidationError):
                span = TraceSpan.model_validate_json(line)
                unique[span.span_id] = span
    spans = (span for span in unique.values() if span.trace_id == trace_id)
    return sorted(spans, key=lambda span: (span.start, span.span_id))


def service_names(spans: Iterable[TraceSpan]) -> list[str]:
    """The services in the trace, in order of their first span."""
    return list(dict.fromkeys(span.service for span in spans))


def build_trace_tree(spans: Sequence[TraceSpan], title: str, rows: int = MAX_ROWS) -> Tree:
    """The spans as a tree of at most `rows` lines; like leaves side by side are one line."""
    tree = Tree(Text(title, style="bold"), guide_style="dim")
    span_ids = {span.span_id for span in spans}
    roots = [span for span in spans if span.parent_id not in span_ids]
    children: dict[str, list[TraceSpan]] = {}
    for span in spans:
        if span.parent_id:
            children.setdefault(span.parent_id, []).append(span)
    origin = min((span.start for span in spans), default=datetime.min)
    remaining = _add_groups(tree, roots, children, origin, rows)
    if remaining < 0:
        tree.add(Text(f"and {-remaining} more", style="dim"))
    return tree


def _add_groups(
    tree: Tree,
    spans: Sequence[TraceSpan],
    children: dict[str, list[TraceSpan]],
    origin: datetime,
    rows: int,
) -> int:
    """Adds lines while `rows` are left; a negative result counts the omitted lines."""
    for group in _group_similar(spans, children):
        rows -= 1
        branch = tree.add(_format_group(group, origin)) if rows >= 0 else tree
        rows = _add_groups(branch, children.get(group[0].span_id, []), children, origin, rows)
    return rows


def _format_group(group: Sequence[TraceSpan], origin: datetime) -> Text:
    first, count = group[0], f" ×{len(group)}" if len(group) > 1 else ""
    line = Text(overflow="ellipsis", no_wrap=True)
    line.append(f"{sum(span.duration_ms for span in group):7.1f} ms ", style="bold")
    line.append(f"+{(first.start - origin).total_seconds() * 1000:<6.0f} ", style="dim")
    line.append(f"{first.service:<9} ", style=COLOURS.get(first.service, "blue"))
    return line.append(f"{first.name}{count}")


def _group_similar(
    spans: Sequence[TraceSpan], children: dict[str, list[TraceSpan]]
) -> Iterator[list[TraceSpan]]:
    """Spans in order, with runs of leaves of one name and service put together."""
    group: list[TraceSpan] = []
    for span in spans:
        is_similar = group and (group[0].name, group[0].service) == (span.name, span.service)
        if is_similar and not children.get(group[0].span_id) and not children.get(span.span_id):
            group.append(span)
            continue
        if group:
            yield group
        group = [span]
    if group:
        yield group
