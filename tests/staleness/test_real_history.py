"""The staleness rules on the real history of a public project."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import pytest

from reverie.contracts.memories.git import GitChange
from reverie.domain.entities.file_paths import is_same_file
from reverie.domain.staleness.anchor_tracking import AnchorTrail, track_anchor
from reverie.domain.staleness.file_changes import FileAnchor, FileChangeStep
from reverie.domain.staleness.grading import StaleGrade
from reverie.domain.staleness.line_ranges import LineRange
from tests.staleness.anchored_session_memories import by_month, by_name, dreamt, followed
from tests.support.real_history import needs_history, read_history, steps_of
from tests.support.real_transcripts import needs_transcripts

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


def anchors_at(history: list[GitChange], moment: datetime) -> list[FileAnchor]:
    """One memory for each file that stood then, learned at that moment."""
    files = files_at(history, moment)
    return [FileAnchor(UUID(int=n), path, moment) for n, path in enumerate(files)]


@pytest.fixture(scope="module")
def steps(history: list[GitChange]) -> list[FileChangeStep]:
    return [step for change in history for step in steps_of(change)]


@pytest.fixture(scope="module")
def trails(history: list[GitChange], steps: list[FileChangeStep]) -> dict[FileAnchor, AnchorTrail]:
    """What became, over all changes, of a memory for each file that stood when it was learned."""
    return {one: track_anchor(one, steps, same) for one in anchors_at(history, LEARNED)}


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


def test_memories_of_deleted_files_are_gone_by_the_deleting_commit(
    history: list[GitChange], trails: dict[FileAnchor, AnchorTrail]
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
        gone = [mark for mark in known[path].marks if mark.grade is StaleGrade.GONE]
        assert gone[0].commit == commit


def test_renamed_files_take_their_memories_to_the_last_name(
    history: list[GitChange], trails: dict[FileAnchor, AnchorTrail]
) -> None:
    moved = [trail for trail in trails.values() if trail.previous_paths]
    assert len(moved) >= 5
    named = {path for change in history for path in (file.path for file in change.files)}
    assert {trail.path for trail in moved} <= named


def test_memories_of_untouched_files_are_not_marked(
    history: list[GitChange], trails: dict[FileAnchor, AnchorTrail]
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


def test_hunks_distinguish_changed_lines_from_the_rest(history: list[GitChange]) -> None:
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
    anchors = [FileAnchor(UUID(int=n), file.path, LEARNED, (LineRange(n, n),)) for n in lines]
    marks = [mark for one in anchors for mark in track_anchor(one, steps, same).marks]
    assert {m.memory.int for m in marks if m.grade is not StaleGrade.SUSPECT} == touched
    assert {m.memory.int for m in marks if m.grade is StaleGrade.SUSPECT} == set(lines) - touched


@needs_transcripts
def test_memories_dreamt_from_real_sessions_are_marked_as_their_history_says(
    steps: list[FileChangeStep],
) -> None:
    told = {(step.commit.sha, step.file.path): step for step in steps}
    named = by_name(steps)
    memories = dreamt()
    trails = [(a, followed(a, named)) for one in memories for a in one.anchors]
    assert len(trails) > 80
    for anchor, trail in trails:
        for mark in trail.marks:
            step = told[mark.commit, mark.path]
            assert step.file.status == mark.change
            assert anchor.known_at < mark.committed_at
    _gone_are_told(trails, steps)
    moved = [(anchor, trail) for anchor, trail in trails if trail.previous_paths]
    assert moved
    assert all(is_same_file(anchor.path, trail.previous_paths[0]) for anchor, trail in moved)
    for month in by_month(memories, steps):
        print(month)
        assert month.by_line < month.by_file / 2
        assert month.anchors_by_line < month.anchors_by_file / 2
        assert month.missed == 0


def _gone_are_told(
    trails: list[tuple[FileAnchor, AnchorTrail]], steps: list[FileChangeStep]
) -> None:
    """Who stands on a file when it is deleted is gone by that commit."""
    deletions = [step for step in steps if step.file.status == "deleted"]
    gone = 0
    for anchor, trail in trails:
        mine = [
            step.commit.sha
            for step in deletions
            if step.at > anchor.known_at
            and (
                is_same_file(anchor.path, step.file.path)
                if not trail.previous_paths
                else step.file.path == trail.path
            )
        ]
        if mine:
            gone += 1
            marks = [mark.commit for mark in trail.marks if mark.grade is StaleGrade.GONE]
            assert set(marks) & set(mine), (anchor.path, mine)
    assert gone > 0
