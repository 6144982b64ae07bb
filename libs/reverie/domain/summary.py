"""The summary of a scope (Layer A): what stands now, by kind, within a token budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, NamedTuple, Protocol, TypeVar

from reverie.domain.kinds import Kind
from reverie.domain.prose import shorten

MAX_LINE = 280

# Heading, kinds, and the share of the budget a section may take before the others are served.
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


class Summarised(Protocol):
    """What the summary reads of a memory."""

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


Note = TypeVar("Note", bound=Summarised)


class _Line(NamedTuple, Generic[Note]):
    """A line and the memories that say it."""

    text: str
    said_by: tuple[Note, ...]


@dataclass(frozen=True)
class Told(Generic[Note]):
    """A summary, and the memories that it rests on in the order of its lines.

    `complete`: every memory that it could rest on is in it; none was cut off by the cap.
    """

    text: str
    rests_on: tuple[Note, ...]
    complete: bool


@dataclass
class _Page(Generic[Note]):
    """The lines chosen so far under each heading."""

    count_tokens: Callable[[str], int]
    cap: int
    chosen: dict[str, list[_Line[Note]]]

    def text(self) -> str:
        return _page((heading, line.text) for heading, line in self.lines())

    def lines(self) -> list[tuple[str, _Line[Note]]]:
        """The lines with their headings, in order."""
        headings = [heading for heading, _, _ in _SECTIONS]
        return [(heading, line) for heading in headings for line in self.chosen.get(heading, [])]

    def add(self, heading: str, line: _Line[Note]) -> bool:
        """Takes the line if the whole page stays within the cap."""
        lines = self.chosen.setdefault(heading, [])
        lines.append(line)
        if self.count_tokens(self.text()) <= self.cap:
            return True
        lines.pop()
        return False


def summarise(
    memories: Iterable[Note], count_tokens: Callable[[str], int], cap: int = 800
) -> Told[Note]:
    """Markdown with a section per kind, at most `cap` tokens; empty where nothing fits.

    Within a section: pinned first, then by confidence, then the newest; sessions the newest
    first. Each section is first served up to its share, then what is left goes round. The
    same memories in any order give the same text.
    """
    groups = _grouped(memories)
    page: _Page[Note] = _Page(count_tokens, cap, {})
    left = {
        heading: _serve(page, heading, groups[heading], share) for heading, _, share in _SECTIONS
    }
    complete = True
    for heading, lines in left.items():
        for line in lines:
            if not page.add(heading, line):
                complete = False
                break
    rests_on = tuple(memory for _, line in page.lines() for memory in line.said_by)
    return Told(page.text(), rests_on, complete)


ROOM = 0.9
"""A summary that was cut is looked for more from this share of its cap on down."""


def needs_whole(was_complete: bool, weighed_anew: bool, tokens: int, cap: int) -> bool:
    """Whether what was cut off before has to be looked at again: a line was weighed anew, so that
    another may stand before it, or there is room once more."""
    return not was_complete and (weighed_anew or tokens < ROOM * cap)


def render(said: Iterable[tuple[Kind, str]]) -> str:
    """A summary of old from kinds and contents, in the order of its lines."""
    headings = {kind: heading for heading, kinds, _ in _SECTIONS for kind in kinds}
    known = [(headings[kind], f"- {_first(kind, text)}") for kind, text in said if kind in headings]
    return _page(dict.fromkeys(known))


def _page(lines: Iterable[tuple[str, str]]) -> str:
    parts: dict[str, list[str]] = {}
    for heading, line in lines:
        parts.setdefault(heading, [f"## {heading}"]).append(line)
    return "\n\n".join("\n".join(part) for part in parts.values())


def without(summary: str, contents: Iterable[str]) -> str:
    """The summary less the lines that tell these contents, and headings that nothing follows."""
    gone = {f"- {_told(content)}" for text in contents for content in (text, text.split("\n- ")[0])}
    if not gone:
        return summary
    parts = [part.split("\n") for part in summary.split("\n\n")]
    kept = [[line for line in part if line not in gone] for part in parts]
    return "\n\n".join("\n".join(part) for part in kept if part and not _bare(part))


def _bare(part: Sequence[str]) -> bool:
    return len(part) == 1 and part[0].startswith("#")


def _grouped(memories: Iterable[Note]) -> dict[str, list[_Line[Note]]]:
    everything = sorted(memories, key=lambda memory: memory.content)
    return {
        heading: _lines([memory for memory in everything if memory.kind in kinds])
        for heading, kinds, _ in _SECTIONS
    }


def _lines(memories: Sequence[Note]) -> list[_Line[Note]]:
    said: dict[str, list[Note]] = {}
    for memory in sorted(memories, key=_rank, reverse=True):
        said.setdefault(f"- {_first(memory.kind, memory.content)}", []).append(memory)
    return [_Line(text, tuple(by)) for text, by in said.items()]


def _rank(memory: Summarised) -> tuple[bool, float, datetime]:
    # A session's worth is its newness; of the rest, how sure we are of it comes first.
    weight = 0.0 if memory.kind is Kind.SESSION else round(memory.confidence, 2)
    return (memory.pinned, weight, memory.updated_at)


def _first(kind: Kind, content: str) -> str:
    return _told(content if kind is not Kind.SESSION else content.split("\n- ")[0])


def _told(content: str) -> str:
    return shorten(" ".join(content.split()), MAX_LINE)


def _serve(
    page: _Page[Note], heading: str, lines: list[_Line[Note]], share: float
) -> list[_Line[Note]]:
    """Takes lines up to the section's share of the cap; gives back the others."""
    room = int(page.cap * share)
    for i, line in enumerate(lines):
        room -= page.count_tokens(line.text)
        if (room < 0 and i > 0) or not page.add(heading, line):
            return lines[i:]
    return []
