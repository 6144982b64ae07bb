"""The rules of staleness over the real history of a public project."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import pytest

from reverie.contracts.git import GitChange
from reverie.domain.following import Trail, follow
from reverie.domain.lines import Part
from reverie.domain.staleness import Anchored, Grade
from tests.integration.history import needs_history, read_history, steps_of

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


@pytest.fixture(scope="module")
def trails(history: list[GitChange]) -> dict[Anchored, Trail]:
    """What became, over all changes, of a memory for each file that stood when it was learned."""
    steps = [step for change in history for step in steps_of(change)]
    return {one: follow(one, steps, same) for one in anchors_at(history, LEARNED)}


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
    history: list[GitChange], trails: dict[Anchored, Trail]
) -> None:
    known = {anchor.path: trail for anchor, trail in trails.items()}
    told = {
        file.path: change.after
        for change in reversed(history)
        for file in change.files
        if file.status == "deleted"
        and file.path in known
        and change.commits[-1].committed_at > LEARNED
    }
    assert len(told) >= 5
    for path, commit in told.items():
        gone = [mark for mark in known[path].marks if mark.grade is Grade.GONE]
        assert gone[0].commit == commit


def test_renamed_files_take_their_memories_along_to_the_last_name(
    history: list[GitChange], trails: dict[Anchored, Trail]
) -> None:
    moved = [trail for trail in trails.values() if trail.left]
    assert len(moved) >= 5
    named = {path for change in history for path in (file.path for file in change.files)}
    assert {trail.path for trail in moved} <= named


def test_untouched_files_leave_their_memories_in_peace(
    history: list[GitChange], trails: dict[Anchored, Trail]
) -> None:
    touched = {
        path
        for change in history
        if change.commits[-1].committed_at > LEARNED
        for file in change.files
        for path in (file.path, file.old_path)
    }
    peaceful = [trail for anchor, trail in trails.items() if anchor.path not in touched]
    assert peaceful
    assert not any(trail.marks for trail in peaceful)
    assert sum(bool(trail.marks) for trail in trails.values()) > 5


def test_hunks_tell_the_lines_that_changed_from_the_rest(history: list[GitChange]) -> None:
    """An edit with many hunks: each old line is in one of them or it is not."""
    change, file = max(
        ((c, f) for c in history for f in c.files if len(f.hunks) <= 40),
        key=lambda pair: len(pair[1].hunks),
    )
    touched = {
        n for hunk in file.hunks for n in range(hunk.old_start, hunk.old_start + hunk.old_lines)
    }
    lines = range(1, max(touched) + 10)
    steps = steps_of(change)
    anchors = [Anchored(UUID(int=n), file.path, LEARNED, (Part(n, n),)) for n in lines]
    marks = [mark for one in anchors for mark in follow(one, steps, same).marks]
    assert {m.memory.int for m in marks if m.grade is not Grade.SUSPECT} == touched
    assert {m.memory.int for m in marks if m.grade is Grade.SUSPECT} == set(lines) - touched
