"""The summary of a scope (Layer A): what stands now, by kind, within a token budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

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


@dataclass
class _Page:
    """The lines chosen so far under each heading."""

    count_tokens: Callable[[str], int]
    cap: int
    chosen: dict[str, list[str]]

    def text(self) -> str:
        parts = [
            "\n".join([f"## {heading}", *self.chosen[heading]])
            for heading, _, _ in _SECTIONS
            if self.chosen.get(heading)
        ]
        return "\n\n".join(parts)

    def add(self, heading: str, line: str) -> bool:
        """Takes the line if the whole page stays within the cap."""
        lines = self.chosen.setdefault(heading, [])
        lines.append(line)
        if self.count_tokens(self.text()) <= self.cap:
            return True
        lines.pop()
        return False


def summarise(
    memories: Iterable[Summarised], count_tokens: Callable[[str], int], cap: int = 800
) -> str:
    """Markdown with a section per kind, at most `cap` tokens; empty where nothing fits.

    Within a section: pinned first, then by confidence, then the newest; sessions the newest
    first. Each section is first served up to its share, then what is left goes round. The
    same memories in any order give the same text.
    """
    groups = _grouped(memories)
    page = _Page(count_tokens, cap, {})
    left = {
        heading: _serve(page, heading, groups[heading], share) for heading, _, share in _SECTIONS
    }
    for heading, lines in left.items():
        for line in lines:
            if not page.add(heading, line):
                break
    return page.text()


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


def _grouped(memories: Iterable[Summarised]) -> dict[str, list[str]]:
    everything = sorted(memories, key=lambda memory: memory.content)
    return {
        heading: _lines([memory for memory in everything if memory.kind in kinds])
        for heading, kinds, _ in _SECTIONS
    }


def _lines(memories: Sequence[Summarised]) -> list[str]:
    ranked = sorted(memories, key=_rank, reverse=True)
    return list(dict.fromkeys(f"- {_line(memory)}" for memory in ranked))


def _rank(memory: Summarised) -> tuple[bool, float, datetime]:
    # A session's worth is its newness; of the rest, how sure we are of it comes first.
    weight = 0.0 if memory.kind is Kind.SESSION else round(memory.confidence, 2)
    return (memory.pinned, weight, memory.updated_at)


def _line(memory: Summarised) -> str:
    first = memory.content if memory.kind is not Kind.SESSION else memory.content.split("\n- ")[0]
    return _told(first)


def _told(content: str) -> str:
    return shorten(" ".join(content.split()), MAX_LINE)


def _serve(page: _Page, heading: str, lines: list[str], share: float) -> list[str]:
    """Takes lines up to the section's share of the cap; gives back the others."""
    room = int(page.cap * share)
    for i, line in enumerate(lines):
        room -= page.count_tokens(line)
        if (room < 0 and i > 0) or not page.add(heading, line):
            return lines[i:]
    return []
