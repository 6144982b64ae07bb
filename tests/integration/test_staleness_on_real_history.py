"""The rules of staleness over the real history of a public project."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import pytest

from reverie.contracts.git import GitChange
from reverie.domain.staleness import (
    Anchored,
    Assessment,
    Grade,
    Mark,
    Move,
    assess,
    combine,
)
from tests.integration.history import needs_history, read_history, to_domain

pytestmark = needs_history

LEARNED = datetime.fromisoformat("2026-01-12T12:00:00+00:00")


@pytest.fixture(scope="module")
def history() -> list[GitChange]:
    return list(read_history())


def same(anchor: str, changed: str) -> bool:
    return anchor == changed


def files_at(history: list[GitChange], moment: datetime) -> list[str]:
    """The files that stood at that moment, in order of their names."""
    standing: set[str] = set()
    for change in history:
        if change.commits[-1].committed_at <= moment:
            for file in change.files:
                standing -= {file.path if file.status == "deleted" else file.old_path or ""}
                standing |= {file.path} if file.status != "deleted" else set()
    return sorted(standing)


def anchors_at(history: list[GitChange], moment: datetime) -> list[Anchored]:
    """One memory for each file that stood then, learned at that moment."""
    files = files_at(history, moment)
    return [Anchored(UUID(int=n), path, moment) for n, path in enumerate(files)]


def replay(history: list[GitChange], anchors: list[Anchored]) -> Assessment:
    """All changes in turn over the same memories, whose anchors follow the renames."""
    marks: list[Mark] = []
    moves: list[Move] = []
    for change in history:
        found = assess(to_domain(change), anchors, same)
        marks.extend(found.marks)
        moves.extend(found.moves)
        to = {(move.memory, move.old): move.new for move in found.moves}
        anchors = [
            Anchored(a.memory, to.get((a.memory, a.path), a.path), a.known_at, a.lines)
            for a in anchors
        ]
    return Assessment(tuple(marks), tuple(moves))


def test_every_line_of_the_history_is_a_valid_event(history: list[GitChange]) -> None:
    everything = list(read_history(merges=True))
    assert len(everything) == 653
    assert len(history) == 653 - 132
    assert {file.status for change in everything for file in change.files} == {
        "added",
        "modified",
        "deleted",
        "renamed",
    }


def test_memories_of_deleted_files_are_gone_by_the_commit_that_deleted_them(
    history: list[GitChange],
) -> None:
    anchors = anchors_at(history, LEARNED)
    known = {anchor.path: anchor.memory for anchor in anchors}
    gone = {
        (mark.memory, mark.commit)
        for mark in replay(history, anchors).marks
        if mark.grade is Grade.GONE
    }
    told = {
        (known[file.path], change.after)
        for change in history
        for file in change.files
        if file.status == "deleted"
        and file.path in known
        and change.commits[-1].committed_at > LEARNED
    }
    assert len(told) >= 5
    assert told <= gone


def test_renamed_files_take_their_memories_along_to_the_last_name(
    history: list[GitChange],
) -> None:
    anchors = anchors_at(history, LEARNED)
    moves = replay(history, anchors).moves
    assert len(moves) >= 5
    last = {move.memory: move.new for move in moves}
    named = {path for change in history for path in (file.path for file in change.files)}
    assert set(last.values()) <= named


def test_untouched_files_leave_their_memories_in_peace(history: list[GitChange]) -> None:
    anchors = anchors_at(history, LEARNED)
    touched = {
        path
        for change in history
        if change.commits[-1].committed_at > LEARNED
        for file in change.files
        for path in (file.path, file.old_path)
    }
    verdicts = combine(replay(history, anchors).marks)
    peaceful = {anchor.memory for anchor in anchors if anchor.path not in touched}
    assert peaceful
    assert verdicts.keys() & peaceful == set()
    assert verdicts.keys() - peaceful


def test_hunks_tell_the_lines_that_changed_from_the_rest(history: list[GitChange]) -> None:
    """The largest edit, by hunks, of a file: each old line is in a hunk or it is not."""
    change, file = max(
        ((c, f) for c in history for f in c.files if f.status == "modified"),
        key=lambda pair: len(pair[1].hunks),
    )
    touched = {
        n for start, count, *_ in (h.place for h in file.hunks) for n in range(start, start + count)
    }
    lines = range(1, max(touched) + 10)
    anchors = [Anchored(UUID(int=n), file.path, LEARNED, ((n, n),)) for n in lines]
    marks = assess(to_domain(change), anchors, same).marks
    assert {m.memory.int for m in marks if m.grade is Grade.STALE} == touched
    assert {m.memory.int for m in marks if m.grade is Grade.SUSPECT} == set(lines) - touched
