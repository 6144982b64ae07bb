"""Memories extracted from real sessions, with anchors from the files those sessions read."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID, uuid5

from reverie.agent.git.anchoring import find_in_source
from reverie.agent.transcripts.turns import ParsedTurn
from reverie.domain.entities.file_paths import extract_identifiers, is_same_file
from reverie.domain.extraction.conversation.topic_segmentation import segment_turns
from reverie.domain.extraction.rule_extractor import (
    ExtractedMemory,
    build_session_memory,
    extract_memories,
)
from reverie.domain.staleness.anchor_tracking import AnchorTrail, track_anchor
from reverie.domain.staleness.file_changes import FileAnchor, FileChangeStep
from reverie.domain.staleness.grading import StaleGrade, StaleMark
from reverie.domain.staleness.line_ranges import LineRange
from reverie.domain.text.turns import TurnText, condense_tool_output
from tests.support.real_transcripts import transcripts

_SPACE = UUID(int=7)
_READ = re.compile(r"^`(?:\./)?([^`]+)`")
_LINE = re.compile(r"^ *(\d+)→(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Dreamt:
    """A memory, and an anchor for each file that it speaks of."""

    content: str
    anchors: tuple[FileAnchor, ...]


def dreamt() -> list[Dreamt]:
    """The memories of all sessions."""
    found = []
    for stem, transcript in transcripts().items():
        read = _read(transcript)
        slices = segment_turns(_turns(stem, transcript))
        session = build_session_memory(slices)
        for n, one in enumerate([*extract_memories(slices), *([session] if session else [])]):
            memory = uuid5(_SPACE, f"{stem} {n}")
            anchors = tuple(_anchor(memory, one, path, read) for path in one.files)
            found.append(Dreamt(one.content, anchors))
    return found


def followed(
    anchor: FileAnchor, by_name: dict[str, list[tuple[int, FileChangeStep]]]
) -> AnchorTrail:
    """What became of an anchor, by the steps of every name that its file may have got."""
    names, fresh = set[str](), {_last(anchor.path)}
    while fresh:
        names |= fresh
        steps = (step for name in fresh for _, step in by_name.get(name, ()))
        fresh = {_last(s.file.path) for s in steps if s.file.status == "renamed"} - names
    own = dict(pair for name in names for pair in by_name.get(name, ()))
    return track_anchor(anchor, [own[place] for place in sorted(own)], is_same_file)


def by_name(steps: Iterable[FileChangeStep]) -> dict[str, list[tuple[int, FileChangeStep]]]:
    """The steps, each with its place, by the last component of either path."""
    found: defaultdict[str, list[tuple[int, FileChangeStep]]] = defaultdict(list)
    for place, step in enumerate(steps):
        for name in {_last(step.file.path), _last(step.file.previous_path)}:
            found[name].append((place, step))
    return found


def _turns(stem: str, transcript: Sequence[ParsedTurn]) -> Sequence[TurnText]:
    return [
        TurnText(
            uuid5(_SPACE, f"{stem} {turn.external_id}"),
            n,
            turn.role,
            condense_tool_output(turn.tool, turn.content) if turn.role == "tool" else turn.content,
            turn.at or datetime(2026, 1, 15, tzinfo=UTC),
            turn.tool,
        )
        for n, turn in enumerate(transcript)
        if turn.content.strip()
    ]


def _read(transcript: Sequence[ParsedTurn]) -> dict[str, bytes]:
    """What the session read of each file, line by line; what it did not read is empty."""
    lines: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for turn in transcript:
        named = _READ.match(turn.content) if turn.tool == "Read" else None
        if named:
            for number, text in _LINE.findall(turn.content):
                lines[named[1]].setdefault(int(number), text)
    return {
        path: "\n".join(known.get(n, "") for n in range(1, max(known) + 1)).encode()
        for path, known in lines.items()
        if known
    }


def _anchor(memory: UUID, one: ExtractedMemory, path: str, read: dict[str, bytes]) -> FileAnchor:
    source = next((text for name, text in read.items() if is_same_file(path, name)), None)
    found = (
        find_in_source(one.content, path, source, is_only_file=len(one.files) == 1)
        if source
        else None
    )
    parts: tuple[LineRange, ...] = ()
    if found:
        parts = (
            *(LineRange(s.first_line, s.last_line, s.name) for s in found.symbols),
            *(LineRange(first, last) for first, last in found.lines),
        )
    words = frozenset[str]() if parts else extract_identifiers(one.content)
    wrote = dict(one.file_writes).get(path)
    return FileAnchor(memory, path, max(one.at, wrote or one.at), parts, words, written_at=wrote)


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1].lower()


@dataclass(frozen=True)
class Month:
    """How much is flagged after a month, of the memories that touch files and of their anchors: by
    file where it was changed at all, by line where what the memory speaks of in it was changed or
    is gone; and how many anchors of a deleted file are not told gone."""

    month: str
    memories: int
    by_file: int
    by_line: int
    anchors: int
    anchors_by_file: int
    anchors_by_line: int
    missed: int

    def __str__(self) -> str:
        file, line = self.by_file / self.memories, self.by_line / self.memories
        of = f"of {self.memories} memories ({self.anchors_by_file} and {self.anchors_by_line}"
        return (
            f"{self.month}: by file {file:.1%}, by line {line:.1%} {of} of {self.anchors} anchors)"
        )


def by_month(memories: Sequence[Dreamt], steps: Sequence[FileChangeStep]) -> list[Month]:
    """The figures as they stood at the end of each month in which something was changed."""
    anchored = [one.anchors for one in memories if one.anchors]
    learned = min(anchor.known_at for anchors in anchored for anchor in anchors)
    months = sorted({f"{s.at.astimezone(UTC):%Y-%m}" for s in steps if s.at > learned})
    return [
        _month(
            month, anchored, by_name(s for s in steps if f"{s.at.astimezone(UTC):%Y-%m}" <= month)
        )
        for month in months
    ]


def _month(
    month: str,
    memories: Sequence[tuple[FileAnchor, ...]],
    named: dict[str, list[tuple[int, FileChangeStep]]],
) -> Month:
    by_file = [[bool(followed(_bare(one), named).marks) for one in each] for each in memories]
    trails = [[followed(one, named) for one in each] for each in memories]
    by_line = [[any(_sure(mark) for mark in one.marks) for one in each] for each in trails]
    deleted = [one for each in trails for one in each if _was_deleted(one)]
    return Month(
        month,
        len(memories),
        sum(map(any, by_file)),
        sum(map(any, by_line)),
        sum(map(len, memories)),
        sum(map(sum, by_file)),
        sum(map(sum, by_line)),
        sum(not any(mark.grade is StaleGrade.GONE for mark in one.marks) for one in deleted),
    )


def _bare(anchor: FileAnchor) -> FileAnchor:
    """The anchor as one that knows its file alone."""
    return replace(anchor, ranges=(), identifiers=frozenset(), written_at=None)


def _sure(mark: StaleMark) -> bool:
    return mark.grade is not StaleGrade.SUSPECT


def _was_deleted(trail: AnchorTrail) -> bool:
    return any(mark.change == "deleted" for mark in trail.marks)
