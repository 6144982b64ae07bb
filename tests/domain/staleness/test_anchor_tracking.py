"""How changes, moves and reverts affect an anchor and mark its memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.staleness.anchor_tracking import AnchorTrail, track_anchor
from reverie.domain.staleness.file_changes import (
    ChangeCommit,
    ChangedFile,
    FileAnchor,
    FileChangeStep,
    FileEdit,
    LineMove,
)
from reverie.domain.staleness.grading import StaleGrade, StaleMark, grade_file
from reverie.domain.staleness.line_ranges import DiffHunk, LineRange, hunk_touches, shift_range

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MEMORY = UUID(int=1)
PATH = "src/app.py"


def same(anchor: str, changed: str) -> bool:
    return anchor == changed


def ends_alike(anchor: str, changed: str) -> bool:
    return changed == anchor or changed.endswith("/" + anchor)


def known(
    path: str = PATH,
    *,
    lines: tuple[tuple[int, int], ...] = (),
    symbols: tuple[tuple[str, int, int], ...] = (),
    at: datetime = NOON - HOUR,
    **more: object,
) -> FileAnchor:
    parts = (
        *(LineRange(first, last, name) for name, first, last in symbols),
        *(LineRange(first, last) for first, last in lines),
    )
    return FileAnchor(MEMORY, path, at, parts, **more)  # type: ignore[arg-type]


def file(
    status: str, path: str = PATH, *, hunks: tuple[DiffHunk, ...] = (), **more: object
) -> ChangedFile:
    edits = tuple(FileEdit(hunk) for hunk in hunks)
    return ChangedFile(path, status, edits=edits, **more)  # type: ignore[arg-type]


def steps(*files: ChangedFile, subjects: tuple[str, ...] = ()) -> list[FileChangeStep]:
    """One commit a file, an hour apart; its sha is its place's letter forty times."""
    told = []
    for n, one in enumerate(files):
        subject = subjects[n] if n < len(subjects) else f"change {n}"
        at = NOON + n * HOUR
        told.append(FileChangeStep(one, ChangeCommit("abcdef"[n] * 40, subject, at), at))
    return told


def followed(*files: ChangedFile, of: FileAnchor | None = None) -> AnchorTrail:
    return track_anchor(of or known(), steps(*files), same)


def grades(trail: AnchorTrail) -> list[tuple[str, float]]:
    return [(mark.grade.value, mark.score) for mark in trail.marks]


def test_a_memory_of_a_deleted_file_is_gone_and_names_the_commit() -> None:
    assert followed(file("deleted"), of=known(lines=((3, 4),))).marks == (
        StaleMark(
            memory=MEMORY,
            path=PATH,
            grade=StaleGrade.GONE,
            score=1.0,
            commit="a" * 40,
            subject="change 0",
            committed_at=NOON,
            change="deleted",
            lines=((3, 4),),
        ),
    )


def test_a_memory_without_lines_is_suspect_when_its_file_is_modified() -> None:
    assert grades(followed(file("modified", hunks=((3, 1, 3, 2),)))) == [("suspect", 0.5)]
    assert grades(followed(file("modified"), of=known(lines=((10, 20),)))) == [("suspect", 0.5)]


@pytest.mark.parametrize(
    "hunk",
    [(10, 1, 10, 1), (20, 5, 20, 0), (1, 30, 1, 30), (5, 6, 5, 9), (10, 0, 11, 3), (19, 0, 20, 1)],
    ids=["first line", "last line", "all around", "up to the first", "parts 10|11", "parts 19|20"],
)
def test_a_memory_is_stale_when_a_hunk_hits_its_lines(hunk: DiffHunk) -> None:
    changed = file("modified", hunks=((100, 2, 100, 2), hunk))
    assert grades(followed(changed, of=known(lines=((10, 20),)))) == [("stale", 0.8)]


@pytest.mark.parametrize(
    "hunk",
    [(9, 1, 9, 1), (21, 4, 21, 4), (9, 0, 10, 5), (20, 0, 21, 5), (0, 0, 1, 5)],
    ids=["before", "after", "inserts before", "inserts after", "inserts at the top"],
)
def test_a_change_elsewhere_in_the_file_is_only_a_weak_suspicion(hunk: DiffHunk) -> None:
    trail = followed(file("modified", hunks=(hunk,)), of=known(lines=((10, 20),)))
    assert grades(trail) == [("suspect", 0.2)]


def test_removed_lines_and_removed_symbols_are_gone() -> None:
    cut_out = file("modified", hunks=((8, 15, 7, 0),))
    assert grades(followed(cut_out, of=known(lines=((10, 20),)))) == [("gone", 1.0)]
    removed = file("modified", hunks=((90, 4, 89, 0),), removed_symbols=frozenset({"load"}))
    assert grades(followed(removed, of=known(symbols=(("load", 10, 20),)))) == [("gone", 1.0)]
    assert grades(followed(removed, of=known(symbols=(("save", 10, 20),)))) == [("suspect", 0.2)]


def test_without_lines_the_named_identifiers_decide() -> None:
    def changed(symbols: set[str], words: set[str]) -> AnchorTrail:
        edit = FileEdit((3, 1, 3, 1), "code", frozenset(symbols), frozenset(words))
        return followed(
            ChangedFile(PATH, "modified", edits=(edit,)),
            of=known(identifiers=frozenset({"verifyToken"})),
        )

    assert grades(changed({"verifyToken"}, set())) == [("stale", 0.8)]
    assert grades(changed({"other"}, {"verifyToken"})) == [("suspect", 0.5)]
    assert grades(changed({"other"}, {"thing"})) == [("suspect", 0.2)]
    assert grades(changed(set(), set())) == [("suspect", 0.5)]


@pytest.mark.parametrize(("kind", "score"), [("comment", 0.24), ("space", 0.08), ("code", 0.8)])
def test_comment_changes_weigh_less_and_white_space_least(kind: str, score: float) -> None:
    changed = ChangedFile(PATH, "modified", edits=(FileEdit((12, 1, 12, 1), kind),))
    grade = "stale" if kind == "code" else "suspect"
    assert grades(followed(changed, of=known(lines=((10, 20),)))) == [(grade, score)]
    aside = ChangedFile(PATH, "modified", edits=(FileEdit((90, 1, 90, 1), "space"),))
    assert grades(followed(aside, of=known(lines=((10, 20),)))) == []


def test_line_ranges_follow_earlier_edits() -> None:
    moved = file("modified", hunks=((1, 0, 1, 100),))
    hit = file("modified", hunks=((112, 1, 112, 1),))
    missed = file("modified", hunks=((12, 1, 12, 1),))
    of = known(lines=((10, 20),))
    assert grades(followed(moved, missed, of=of)) == [("suspect", 0.2)]
    trail = followed(moved, hit, of=of)
    assert grades(trail) == [("suspect", 0.2), ("stale", 0.8)]
    assert trail.ranges == (LineRange(110, 120),)


def test_one_suspicion_per_file_is_kept_and_every_hit() -> None:
    far, hit = file("modified", hunks=((90, 1, 90, 1),)), file("modified", hunks=((12, 1, 12, 1),))
    trail = followed(far, far, hit, far, hit, of=known(lines=((10, 20),)))
    assert [(mark.commit[0], mark.grade.value) for mark in trail.marks] == [
        ("c", "stale"),
        ("d", "suspect"),
        ("e", "stale"),
    ]


@pytest.mark.parametrize("status", ["added", "copied", "mode"])
def test_changes_that_keep_the_content_mark_nothing(status: str) -> None:
    assert followed(file(status, old_path="src/other.py")) == AnchorTrail((), PATH, ())


def test_a_rename_moves_the_anchor_and_marks_nothing() -> None:
    away = file("renamed", "lib/app.py", old_path=PATH)
    on = file("renamed", "lib/main.py", old_path="lib/app.py", hunks=((3, 1, 3, 1),))
    assert followed(away) == AnchorTrail((), "lib/app.py", (), (PATH,))
    trail = followed(away, on, file("deleted"))
    assert (trail.path, trail.previous_paths) == ("lib/main.py", (PATH, "lib/app.py"))
    assert [(mark.path, mark.grade.value) for mark in trail.marks] == [("lib/main.py", "suspect")]


def test_a_rename_onto_a_known_path_says_nothing_about_the_file_before() -> None:
    changed = file("renamed", PATH, old_path="src/old.py", hunks=((1, 1, 1, 1),))
    assert followed(changed) == AnchorTrail((), PATH, ())


def test_after_a_rename_the_path_is_known_exactly() -> None:
    away = file("renamed", "cli/new/app.py", old_path="cli/src/app.py")
    other = file("deleted", "web/app.py")
    trail = track_anchor(known("app.py"), steps(away, other), ends_alike)
    assert (grades(trail), trail.path) == ([], "cli/new/app.py")


def test_lines_moved_to_another_file_take_their_anchor_along() -> None:
    moved = LineMove(8, 30, "src/auth.py", 100, 1.0)
    changed = file("modified", hunks=((8, 23, 7, 0),), moved=(moved,))
    trail = followed(changed, of=known(lines=((10, 20), (50, 60))))
    assert grades(trail) == [("suspect", 0.2)]
    assert trail.moved_anchors == (FileAnchor(MEMORY, "src/auth.py", NOON, (LineRange(102, 112),)),)
    assert trail.ranges == (LineRange(27, 37),)
    altered = LineMove(8, 30, "src/auth.py", 100, 0.7)
    changed = file("modified", hunks=((8, 23, 7, 0),), moved=(altered,))
    assert grades(followed(changed, of=known(lines=((10, 20),)))) == [("suspect", 0.3)]
    whole = LineMove(8, 30, "src/auth.py", 100, 1.0)
    away = file("modified", hunks=((8, 23, 7, 0),), moved=(whole,))
    assert grades(followed(away, file("deleted"), of=known(lines=((10, 20),)))) == []


def test_a_revert_clears_the_mark_and_reverting_the_revert_restores_it() -> None:
    edit, back = (
        file("modified", hunks=((12, 1, 12, 4),)),
        file("modified", hunks=((12, 4, 12, 1),)),
    )
    told = _reverting(steps(edit, back, edit), None, "a" * 10, "b" * 40)
    of = known(lines=((10, 20),))
    assert grades(track_anchor(of, told[:1], same)) == [("stale", 0.8)]
    assert grades(track_anchor(of, told[:2], same)) == []
    again = track_anchor(of, told, same)
    assert [(mark.commit[0], mark.grade.value) for mark in again.marks] == [("a", "stale")]
    assert grades(track_anchor(known(at=NOON, lines=((10, 20),)), told[:2], same)) == [
        ("stale", 0.8)
    ]


def test_restored_content_clears_every_mark() -> None:
    edit = file("modified", hunks=((12, 1, 12, 1),), old_blob="1", new_blob="2")
    back = file("modified", hunks=((12, 1, 12, 1),), old_blob="2", new_blob="1")
    of = known(lines=((10, 20),))
    assert grades(followed(edit, edit, of=of)) != []
    assert followed(edit, back, of=of) == AnchorTrail((), PATH, of.ranges)
    own = known(lines=((10, 20),), blob="2")
    assert followed(edit, of=own) == AnchorTrail((), PATH, own.ranges)


def test_a_restored_file_is_no_longer_gone_and_another_file_of_its_name_is_not_it() -> None:
    gone, other = file("deleted", old_blob="1"), file("added", new_blob="2")
    assert grades(followed(gone, other, file("modified"), file("deleted"))) == [("gone", 1.0)]
    assert grades(followed(gone, file("added", new_blob="1"))) == []
    told = steps(gone, file("added"), subjects=("Drop it", 'Revert "Drop it"'))
    assert grades(track_anchor(known(), told, same)) == [("gone", 1.0)], "a subject proves nothing"
    assert grades(track_anchor(known(), _reverting(told, None, "a" * 40), same)) == []


def _reverting(told: list[FileChangeStep], *reverted: str | None) -> list[FileChangeStep]:
    """The steps, each with the commit that its message says it reverts."""
    return [
        replace(step, commit=replace(step.commit, reverted_sha=sha))
        for step, sha in zip(told, reverted, strict=True)
    ]


def test_a_deleted_file_that_may_exist_elsewhere_is_suspect() -> None:
    assert grades(followed(file("deleted", may_exist_elsewhere=True))) == [("suspect", 0.5)]


@pytest.mark.parametrize("status", ["deleted", "modified", "renamed"])
@pytest.mark.parametrize("later", [timedelta(0), HOUR])
def test_a_memory_learned_after_the_commit_is_left_alone(status: str, later: timedelta) -> None:
    changed = file(status, old_path=PATH, hunks=((1, 1, 1, 1),))
    assert followed(changed, of=known(at=NOON + later)) == AnchorTrail((), PATH, ())


def test_a_confirmed_memory_has_taken_earlier_edits_into_account() -> None:
    hit, moved = file("modified", hunks=((12, 1, 12, 1),)), file("modified", hunks=((1, 0, 1, 9),))
    later = file("modified", hunks=((21, 1, 21, 1),))
    of = known(lines=((10, 20),), confirmed_at=NOON + HOUR)
    assert grades(followed(hit, moved, of=of)) == []
    assert [mark.commit[0] for mark in followed(hit, moved, later, of=of).marks] == ["c"]


def test_truncated_hunks_make_every_line_uncertain() -> None:
    changed = file("modified", hunks=((90, 1, 90, 1),), is_truncated=True)
    trail = followed(changed, of=known(lines=((10, 20),), symbols=(("load", 10, 20),)))
    assert (grades(trail), trail.ranges) == ([("suspect", 0.5)], (LineRange(0, 0, "load"),))


COUNTS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 6), st.integers(0, 6)), max_size=6)


@given(COUNTS, st.integers(1, 40), st.integers(0, 8))
def test_line_ranges_move_as_the_text_does(
    counts: list[tuple[int, int, int]], first: int, length: int
) -> None:
    """A file of named lines is edited by hunks; lines that stand are where they are carried to."""
    old = [f"line {n}" for n in range(1, 101)]
    hunks: list[DiffHunk] = []
    new: list[str] = []
    at = 0
    for keep, take, put in counts:
        if not take and not put:
            continue
        new += old[at : at + keep + 1]
        at += keep + 1
        start, new_start = at + (take > 0), len(new) + (put > 0)
        hunks.append((start, take, new_start, put))
        new += [f"put {len(hunks)} {n}" for n in range(put)]
        at += take
    new += old[at:]
    part = LineRange(first, first + length)
    if not any(hunk_touches(hunk, part) for hunk in hunks):
        there = shift_range(part, hunks)
        assert new[there.first - 1 : there.last] == old[part.first - 1 : part.last]
    else:
        there = shift_range(part, hunks)
        assert 1 <= there.first <= there.last <= max(len(new), 1)


STATUS = st.sampled_from(["added", "modified", "deleted", "renamed", "copied", "mode"])
HUNKS = st.lists(st.tuples(*(st.integers(0, 60) for _ in range(4))), max_size=3).map(tuple)
FILES = st.lists(
    st.builds(
        lambda path, status, old, hunks: file(status, path, old_path=old, hunks=hunks),
        st.sampled_from(["a.py", "b.py"]),
        STATUS,
        st.none() | st.sampled_from(["a.py", "b.py"]),
        HUNKS,
    ),
    max_size=6,
)
PARTS = st.lists(
    st.tuples(st.integers(1, 50), st.integers(0, 9)).map(lambda s: LineRange(s[0], s[0] + s[1])),
    max_size=2,
).map(tuple)


@given(FILES, PARTS, st.integers(-2, 6))
def test_every_mark_has_a_cause(
    files: list[ChangedFile], parts: tuple[LineRange, ...], hours: int
) -> None:
    anchor = FileAnchor(MEMORY, "a.py", NOON + hours * HOUR, parts)
    told = steps(*files)
    trail = track_anchor(anchor, told, same)
    for mark in trail.marks:
        step = next(one for one in told if one.commit.sha == mark.commit)
        assert step.at > anchor.known_at
        assert (step.file.path, step.file.status) == (mark.path, mark.change)
    assert all(0 < mark.score <= 1 for mark in trail.marks)
    assert track_anchor(anchor, told, same) == trail


def test_a_commit_of_the_memorys_second_counts_if_it_may_have_come_later() -> None:
    [step] = steps(file("deleted"))
    learned = NOON + timedelta(milliseconds=500)
    told_later = replace(step, latest=NOON + timedelta(milliseconds=900))
    told_before = replace(step, latest=NOON + timedelta(milliseconds=400))
    anchor = replace(known(at=learned), known_by_clock=True)
    assert grades(track_anchor(anchor, [told_later], same)) == [("gone", 1.0)]
    assert grades(track_anchor(anchor, [told_before], same)) == []
    # A memory of a commit knows all that the commit has.
    assert grades(track_anchor(known(at=learned), [told_later], same)) == []
    confirmed = replace(anchor, confirmed_at=NOON + timedelta(milliseconds=950))
    assert grades(track_anchor(confirmed, [told_later], same)) == []


def test_a_file_that_only_moved_has_no_grade() -> None:
    assert grade_file(file("renamed", "b.py", old_path="a.py")) is None


def own(wrote: datetime, **more: object) -> FileAnchor:
    """An anchor to lines of a file that the memory's own session wrote."""
    return known(lines=((10, 20),), at=NOON - HOUR / 4, written_at=wrote, **more)  # type: ignore[arg-type]


def test_the_first_commit_of_the_sessions_own_edit_weighs_little_and_the_next_fully() -> None:
    edited = file("modified", hunks=((12, 1, 12, 1),))
    mild, full = ("suspect", 0.2), ("stale", 0.8)
    assert grades(followed(edited, edited, of=own(NOON - HOUR / 2))) == [mild, full]
    assert grades(followed(edited, of=own(NOON - timedelta(hours=25)))) == [full]
    gone = [("gone", 1.0)]
    assert grades(followed(file("deleted"), of=own(NOON - HOUR / 2))) == gone


def test_an_own_edit_may_have_been_committed_before_the_memory_was_learned() -> None:
    edited = file("modified", hunks=((12, 1, 12, 1),))
    anchor = own(NOON - HOUR / 2)
    late = replace(anchor, known_at=NOON + HOUR / 2)
    assert grades(followed(edited, edited, of=late)) == [("stale", 0.8)]
    assert grades(followed(edited, of=late)) == []
