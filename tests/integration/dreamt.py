"""Memories dreamt from real sessions, anchored by what the sessions read."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid5

from reverie.agent.anchoring import find
from reverie.agent.transcripts import Transcript
from reverie.domain.anchors import same_file
from reverie.domain.code_names import code_names
from reverie.domain.distil import Distilled, distil, session_memory
from reverie.domain.following import Trail, follow
from reverie.domain.lines import Part
from reverie.domain.slices import slice_turns
from reverie.domain.staleness import Anchored, Grade, Step
from reverie.domain.turns import TurnText, condense_tool
from tests.integration.transcripts import transcripts

_SPACE = UUID(int=7)
_READ = re.compile(r"^`(?:\./)?([^`]+)`")
_LINE = re.compile(r"^ *(\d+)→(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Dreamt:
    """A memory, and an anchor for each file that it speaks of."""

    content: str
    anchors: tuple[Anchored, ...]


def dreamt() -> list[Dreamt]:
    """The memories of all sessions."""
    found = []
    for stem, transcript in transcripts().items():
        read = _read(transcript)
        slices = slice_turns(_turns(stem, transcript))
        session = session_memory(slices)
        for n, one in enumerate([*distil(slices), *([session] if session else [])]):
            memory = uuid5(_SPACE, f"{stem} {n}")
            anchors = tuple(_anchor(memory, one, path, read) for path in one.files)
            found.append(Dreamt(one.content, anchors))
    return found


def followed(anchor: Anchored, by_name: dict[str, list[tuple[int, Step]]]) -> Trail:
    """What became of an anchor, by the steps of every name that its file may have got."""
    names, fresh = set[str](), {_last(anchor.path)}
    while fresh:
        names |= fresh
        steps = (step for name in fresh for _, step in by_name.get(name, ()))
        fresh = {_last(s.file.path) for s in steps if s.file.status == "renamed"} - names
    own = dict(pair for name in names for pair in by_name.get(name, ()))
    return follow(anchor, [own[place] for place in sorted(own)], same_file)


def by_name(steps: Iterable[Step]) -> dict[str, list[tuple[int, Step]]]:
    """The steps, each with its place, by the last component of either path."""
    found: defaultdict[str, list[tuple[int, Step]]] = defaultdict(list)
    for place, step in enumerate(steps):
        for name in {_last(step.file.path), _last(step.file.known_as)}:
            found[name].append((place, step))
    return found


def _turns(stem: str, transcript: Transcript) -> Sequence[TurnText]:
    return [
        TurnText(
            uuid5(_SPACE, f"{stem} {turn.external_id}"),
            n,
            turn.role,
            condense_tool(turn.tool, turn.content) if turn.role == "tool" else turn.content,
            turn.at or datetime(2026, 1, 15, tzinfo=UTC),
            turn.tool,
        )
        for n, turn in enumerate(transcript.turns)
        if turn.content.strip()
    ]


def _read(transcript: Transcript) -> dict[str, bytes]:
    """What the session read of each file, line by line; what it did not read is empty."""
    lines: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for turn in transcript.turns:
        named = _READ.match(turn.content) if turn.tool == "Read" else None
        if named:
            for number, text in _LINE.findall(turn.content):
                lines[named[1]].setdefault(int(number), text)
    return {
        path: "\n".join(known.get(n, "") for n in range(1, max(known) + 1)).encode()
        for path, known in lines.items()
        if known
    }


def _anchor(memory: UUID, one: Distilled, path: str, read: dict[str, bytes]) -> Anchored:
    source = next((text for name, text in read.items() if same_file(path, name)), None)
    found = find(one.content, path, source, alone=len(one.files) == 1) if source else None
    parts: tuple[Part, ...] = ()
    if found:
        parts = (
            *(Part(s.first, s.last, s.name) for s in found.symbols),
            *(Part(first, last) for first, last in found.lines),
        )
    words = frozenset[str]() if parts else code_names(one.content)
    return Anchored(memory, path, one.at, parts, words)


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1].lower()


@dataclass(frozen=True)
class Month:
    """Of the anchors, how many are flagged after a month: by file where it was changed at all, by
    line where the lines or the symbol were or are gone; and how many of a deleted file are not."""

    month: str
    anchors: int
    by_file: int
    by_line: int
    missed: int

    def __str__(self) -> str:
        file, line = self.by_file / self.anchors, self.by_line / self.anchors
        return f"{self.month}: by file {file:.1%}, by line {line:.1%} of {self.anchors}"


def by_month(trails: Sequence[Trail], anchors: Sequence[Anchored]) -> list[Month]:
    """The figures at the end of each month in which something was changed."""
    months = sorted({f"{m.committed_at:%Y-%m}" for trail in trails for m in trail.marks})
    found = []
    for month in months:
        so_far = [[m for m in t.marks if f"{m.committed_at:%Y-%m}" <= month] for t in trails]
        sure = [[m for m in marks if m.grade is not Grade.SUSPECT] for marks in so_far]
        gone = [any(m.change == "deleted" for m in marks) for marks in so_far]
        missed = sum(one and not any(m.grade is Grade.GONE for m in s)
                     for one, s in zip(gone, sure, strict=True))  # fmt: skip
        found.append(
            Month(month, len(anchors), sum(map(bool, so_far)), sum(map(bool, sure)), missed)
        )
    return found
