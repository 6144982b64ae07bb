"""The summary of a scope (Layer A): its current memories by kind, within a token budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, NamedTuple, Protocol, TypeVar

from reverie.domain.core.kinds import Kind
from reverie.domain.core.memory import is_title_only
from reverie.domain.text.markdown import shorten

MAX_LINE = 280
OVERVIEW = "Overview"
"""The heading of what a language model wrote of the scope."""

# Heading, kinds, and the share of the budget that a section may use before the others.
_SECTIONS: tuple[tuple[str, frozenset[Kind], float], ...] = (
    ("Who and what", frozenset({Kind.IDENTITY}), 0.10),
    ("Conventions", frozenset({Kind.CONVENTION}), 0.20),
    ("Preferences", frozenset({Kind.PREFERENCE}), 0.15),
    ("Decisions", frozenset({Kind.DECISION, Kind.SPEC}), 0.25),
    ("Open tasks", frozenset({Kind.TASK}), 0.10),
    ("Bugs and fixes", frozenset({Kind.BUG}), 0.20),
    ("Lessons", frozenset({Kind.LESSON}), 0.15),
    ("How to", frozenset({Kind.SKILL}), 0.10),
    ("Context", frozenset({Kind.CONTEXT, Kind.REFERENCE, Kind.HISTORICAL}), 0.10),
    ("Recent sessions", frozenset({Kind.SESSION}), 0.15),
)


class SummarizableMemory(Protocol):
    """The fields of a memory that the summary uses."""

    @property
    def kind(self) -> Kind: ...
    @property
    def content(self) -> str: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def confidence(self) -> float: ...
    @property
    def updated_at(self) -> datetime: ...


MemoryT = TypeVar("MemoryT", bound=SummarizableMemory)


class _SummaryLine(NamedTuple, Generic[MemoryT]):
    """A line and the memories that contain it."""

    text: str
    sources: tuple[MemoryT, ...]


@dataclass(frozen=True)
class ComposedSummary(Generic[MemoryT]):
    """A summary, and its source memories in the order of its lines.

    `is_complete`: it contains all possible source memories; the cap cut off none.
    """

    text: str
    sources: tuple[MemoryT, ...]
    is_complete: bool


@dataclass
class _SummaryPage(Generic[MemoryT]):
    """The lines chosen so far under each heading."""

    count_tokens: Callable[[str], int]
    cap: int
    selected: dict[str, list[_SummaryLine[MemoryT]]]

    def text(self) -> str:
        return _render_page((heading, line.text) for heading, line in self.lines())

    def lines(self) -> list[tuple[str, _SummaryLine[MemoryT]]]:
        """The lines with their headings, in order."""
        headings = [heading for heading, _, _ in _SECTIONS]
        return [(heading, line) for heading in headings for line in self.selected.get(heading, [])]

    def add(self, heading: str, line: _SummaryLine[MemoryT]) -> bool:
        """Adds the line if the whole page stays within the cap."""
        lines = self.selected.setdefault(heading, [])
        lines.append(line)
        if self.count_tokens(self.text()) <= self.cap:
            return True
        lines.pop()
        return False


def summarize_memories(
    memories: Iterable[MemoryT], count_tokens: Callable[[str], int], cap: int = 800
) -> ComposedSummary[MemoryT]:
    """Summarizes memories as Markdown with a section per kind.

    The result has at most `cap` tokens and is empty if nothing fits. Order in a section: pinned
    first, then by confidence, then newest; sessions newest first. Each section is first filled up
    to its share, then the rest is shared. Titles of sessions alone are left out. The same memories
    in any order give the same text.
    """
    told = (memory for memory in memories if not is_title_only(memory.content))
    ordered = sorted(told, key=lambda memory: memory.content)
    page: _SummaryPage[MemoryT] = _SummaryPage(count_tokens, cap, {})
    leftovers = {
        heading: _fill_section(
            page, heading, _build_lines(memory for memory in ordered if memory.kind in kinds), share
        )
        for heading, kinds, share in _SECTIONS
    }
    is_complete = True
    for heading, lines in leftovers.items():
        for line in lines:
            if not page.add(heading, line):
                is_complete = False
                break
    sources = tuple(memory for _, line in page.lines() for memory in line.sources)
    return ComposedSummary(page.text(), sources, is_complete)


REBUILD_THRESHOLD = 0.9
"""A summary that was cut is looked for more from this share of its cap on down."""


def needs_rebuild(was_complete: bool, weights_changed: bool, tokens: int, cap: int) -> bool:
    """Returns whether omitted memories must be checked again.

    This is so if the rank of a line changed, so that another may precede it, or if there is room
    again.
    """
    return not was_complete and (weights_changed or tokens < REBUILD_THRESHOLD * cap)


def render_summary(memories: Iterable[tuple[Kind, str]]) -> str:
    """A summary of old from kinds and contents, in the order of its lines."""
    headings = {kind: heading for heading, kinds, _ in _SECTIONS for kind in kinds}
    lines = [
        (headings[kind], f"- {_render_line(kind, text)}")
        for kind, text in memories
        if kind in headings
    ]
    return _render_page(dict.fromkeys(lines))


def _render_page(lines: Iterable[tuple[str, str]]) -> str:
    parts: dict[str, list[str]] = {}
    for heading, line in lines:
        parts.setdefault(heading, [f"## {heading}"]).append(line)
    return "\n\n".join("\n".join(part) for part in parts.values())


def remove_lines(summary: str, contents: Iterable[str]) -> str:
    """Removes the lines with these contents, and headings without lines."""
    removed = {
        f"- {_shorten_line(content)}"
        for text in contents
        for content in (text, text.split("\n- ")[0])
    }
    if not removed:
        return summary
    parts = [part.split("\n") for part in summary.split("\n\n")]
    remaining = [[line for line in part if line not in removed] for part in parts]
    return "\n\n".join(
        "\n".join(part)
        for part in remaining
        if part and not (len(part) == 1 and part[0].startswith("#"))
    )


def add_sentences(summary: str, sentences: Iterable[tuple[str, Iterable[str]]]) -> str:
    """The summary with sentences in place of the lines of the memories that they tell.

    `sentences`: each with the contents of its memories.
    """
    told = list(sentences)
    rest = remove_lines(summary, [text for _, texts in told for text in texts])
    overview = "\n".join([f"## {OVERVIEW}", *(f"- {sentence}" for sentence, _ in told)])
    return "\n\n".join(part for part in (overview if told else "", rest) if part)


def _build_lines(memories: Iterable[MemoryT]) -> list[_SummaryLine[MemoryT]]:
    by_text: dict[str, list[MemoryT]] = {}
    for memory in sorted(memories, key=_sort_key, reverse=True):
        by_text.setdefault(f"- {_render_line(memory.kind, memory.content)}", []).append(memory)
    return [_SummaryLine(text, tuple(sources)) for text, sources in by_text.items()]


def _sort_key(memory: SummarizableMemory) -> tuple[bool, float, datetime]:
    # Sessions are ranked by time; other memories by confidence first.
    weight = 0.0 if memory.kind is Kind.SESSION else round(memory.confidence, 2)
    return (memory.pinned, weight, memory.updated_at)


def _render_line(kind: Kind, content: str) -> str:
    return _shorten_line(content if kind is not Kind.SESSION else content.split("\n- ")[0])


def _shorten_line(content: str) -> str:
    return shorten(" ".join(content.split()), MAX_LINE)


def _fill_section(
    page: _SummaryPage[MemoryT], heading: str, lines: list[_SummaryLine[MemoryT]], share: float
) -> list[_SummaryLine[MemoryT]]:
    """Adds lines up to the section's share of the cap; returns the others."""
    remaining = int(page.cap * share)
    for index, line in enumerate(lines):
        remaining -= page.count_tokens(line.text)
        if (remaining < 0 and index > 0) or not page.add(heading, line):
            return lines[index:]
    return []
