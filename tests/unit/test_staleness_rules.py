"""Which memories a change of files makes doubtful."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.staleness import (
    Anchored,
    Assessment,
    Change,
    ChangedFile,
    Commit,
    Grade,
    Hunk,
    Mark,
    Move,
    Verdict,
    assess,
    combine,
    grade_file,
)

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
FIRST = Commit("a" * 40, "Split the session factory", NOON)
LAST = Commit("b" * 40, "Tidy up", NOON + HOUR)
MEMORY = UUID(int=1)


def same(anchor: str, changed: str) -> bool:
    return anchor == changed


def ends_alike(anchor: str, changed: str) -> bool:
    return changed == anchor or changed.endswith("/" + anchor)


def known(
    path: str = "src/app.py",
    *,
    lines: tuple[tuple[int, int], ...] | None = None,
    at: datetime = NOON - HOUR,
    memory: UUID = MEMORY,
) -> Anchored:
    return Anchored(memory, path, at, lines)


def file(
    status: str,
    path: str = "src/app.py",
    *,
    old_path: str | None = None,
    hunks: tuple[Hunk, ...] = (),
    commit: str | None = None,
) -> ChangedFile:
    return ChangedFile(path, status, old_path, hunks, commit)


def judged(changed: ChangedFile, *anchors: Anchored) -> Assessment:
    return assess(Change((FIRST,), (changed,)), anchors or (known(),), same)


def grades(assessment: Assessment) -> list[tuple[str, float]]:
    return [(mark.grade.value, mark.score) for mark in assessment.marks]


def test_a_memory_of_a_deleted_file_is_gone_and_says_by_which_commit() -> None:
    assert judged(file("deleted")).marks == (
        Mark(
            memory=MEMORY,
            path="src/app.py",
            grade=Grade.GONE,
            score=1.0,
            commit=FIRST.sha,
            subject=FIRST.subject,
            committed_at=FIRST.committed_at,
            change="deleted",
        ),
    )


def test_a_memory_that_names_no_lines_is_suspect_when_its_file_is_modified() -> None:
    assert grades(judged(file("modified", hunks=((3, 1, 3, 2),)))) == [("suspect", 0.5)]


@pytest.mark.parametrize(
    "hunk",
    [(10, 1, 10, 1), (20, 5, 20, 0), (1, 30, 1, 30), (5, 6, 5, 9), (10, 0, 11, 3), (19, 0, 20, 1)],
    ids=["first line", "last line", "all around", "up to the first", "parts 10|11", "parts 19|20"],
)
def test_a_memory_is_stale_when_a_hunk_meets_its_lines(hunk: Hunk) -> None:
    changed = file("modified", hunks=((100, 2, 100, 2), hunk))
    assert grades(judged(changed, known(lines=((10, 20),)))) == [("stale", 0.8)]


@pytest.mark.parametrize(
    "hunk",
    [(9, 1, 9, 1), (21, 4, 21, 4), (9, 0, 10, 5), (20, 0, 21, 5), (0, 0, 1, 5)],
    ids=["before", "after", "inserts before", "inserts after", "inserts at the top"],
)
def test_a_change_elsewhere_in_the_file_only_hints_at_doubt(hunk: Hunk) -> None:
    changed = file("modified", hunks=(hunk,))
    assert grades(judged(changed, known(lines=((10, 20),)))) == [("suspect", 0.2)]


def test_any_of_several_line_ranges_counts() -> None:
    changed = file("modified", hunks=((41, 1, 41, 1),))
    assert grades(judged(changed, known(lines=((1, 5), (40, 42))))) == [("stale", 0.8)]


def test_lines_without_hunks_to_compare_leave_the_memory_suspect() -> None:
    assert grades(judged(file("modified"), known(lines=((10, 20),)))) == [("suspect", 0.5)]


@pytest.mark.parametrize("status", ["added", "copied", "mode"])
def test_what_leaves_the_content_alone_marks_nothing(status: str) -> None:
    assert judged(file(status, old_path="src/other.py")) == Assessment()


def test_a_rename_moves_the_anchor_and_casts_no_doubt() -> None:
    changed = file("renamed", "lib/app.py", old_path="src/app.py")
    moved = Move(MEMORY, "src/app.py", "lib/app.py", FIRST.sha)
    assert judged(changed) == Assessment((), (moved,))


def test_a_rename_with_edits_moves_the_anchor_and_casts_doubt() -> None:
    changed = file("renamed", "lib/app.py", old_path="src/app.py", hunks=((3, 1, 3, 1),))
    found = judged(changed)
    assert [move.new for move in found.moves] == ["lib/app.py"]
    assert grades(found) == [("suspect", 0.5)]
    assert found.marks[0].path == "lib/app.py"


def test_a_rename_onto_a_known_path_says_nothing_of_the_file_that_was_there() -> None:
    changed = file("renamed", "src/app.py", old_path="src/old.py", hunks=((1, 1, 1, 1),))
    assert judged(changed, known("src/app.py")) == Assessment()


@pytest.mark.parametrize("status", ["deleted", "modified", "renamed"])
@pytest.mark.parametrize("later", [timedelta(0), HOUR])
def test_a_memory_learned_after_the_commit_is_left_alone(status: str, later: timedelta) -> None:
    changed = file(status, old_path="src/app.py", hunks=((1, 1, 1, 1),))
    assert judged(changed, known(at=NOON + later)) == Assessment()


def test_other_files_are_left_alone() -> None:
    assert judged(file("deleted"), known("src/other.py"), known("lib/app.py")) == Assessment()


def test_the_matcher_decides_which_paths_mean_one_file() -> None:
    change = Change((FIRST,), (file("deleted", "cli/src/app.py"),))
    assert grades(assess(change, [known("app.py")], ends_alike)) == [("gone", 1.0)]
    assert assess(change, [known("app.py")], same) == Assessment()


def test_a_move_names_the_anchor_as_it_was_written() -> None:
    change = Change((FIRST,), (file("renamed", "cli/new.py", old_path="cli/src/app.py"),))
    found = assess(change, [known("src/app.py")], ends_alike)
    assert found.moves == (Move(MEMORY, "src/app.py", "cli/new.py", FIRST.sha),)


@pytest.mark.parametrize(
    ("named", "blamed"),
    [(FIRST.sha, FIRST), (FIRST.sha[:7], FIRST), (LAST.sha, LAST), (None, LAST)],
    ids=["named", "abbreviated", "the last, named", "none named"],
)
def test_the_commit_to_blame_is_the_one_the_file_names_else_the_last(
    named: str | None, blamed: Commit
) -> None:
    change = Change((FIRST, LAST), (file("deleted", commit=named),))
    (mark,) = assess(change, [known()], same).marks
    assert (mark.commit, mark.subject) == (blamed.sha, blamed.subject)
    assert mark.committed_at == blamed.committed_at


def test_a_commit_outside_the_change_is_named_as_given_with_the_time_of_the_last() -> None:
    change = Change((FIRST, LAST), (file("deleted", commit="c" * 40),))
    (mark,) = assess(change, [known()], same).marks
    assert (mark.commit, mark.subject, mark.committed_at) == ("c" * 40, "", LAST.committed_at)


def test_a_memory_learned_between_two_commits_is_marked_by_the_later_alone() -> None:
    changed = (file("modified", commit=FIRST.sha), file("modified", commit=LAST.sha))
    change = Change((FIRST, LAST), changed)
    (mark,) = assess(change, [known(at=NOON + HOUR / 2)], same).marks
    assert mark.commit == LAST.sha


def test_two_anchors_in_one_file_are_one_reason_the_stronger() -> None:
    changed = file("modified", hunks=((12, 1, 12, 1),))
    anchors = [known(lines=((1, 5),)), known(lines=((10, 20),)), known(lines=((30, 40),))]
    assert grades(judged(changed, *anchors)) == [("stale", 0.8)]


def test_several_doubts_add_up_under_the_worst_grade() -> None:
    other = uuid4()
    change = Change(
        (FIRST,), (file("modified", "a.py", hunks=((12, 1, 12, 1),)), file("modified", "b.py"))
    )
    anchors = [known("a.py", lines=((10, 20),)), known("b.py"), known("b.py", memory=other)]
    found = combine(assess(change, anchors, same).marks)
    assert found[MEMORY].grade is Grade.STALE
    assert found[MEMORY].score == pytest.approx(1 - 0.2 * 0.5)
    assert found[other] == Verdict(Grade.SUSPECT, 0.5)


def test_no_doubts_give_no_verdict() -> None:
    assert combine([]) == {}


PATHS = st.sampled_from(["a.py", "b.py", "c/a.py", "d.py"])
HUNKS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 9), st.integers(0, 60), st.integers(0, 9)),
    max_size=3,
).map(tuple)
STATUS = st.sampled_from(["added", "modified", "deleted", "renamed", "copied", "mode"])
FILES = st.lists(
    st.builds(
        ChangedFile,
        path=PATHS,
        status=STATUS,
        old_path=st.none() | PATHS,
        hunks=HUNKS,
        commit=st.sampled_from([None, FIRST.sha, LAST.sha]),
    ),
    max_size=6,
).map(tuple)
SPANS = st.tuples(st.integers(1, 50), st.integers(0, 9)).map(lambda s: (s[0], s[0] + s[1]))
ANCHORS = st.lists(
    st.builds(
        Anchored,
        memory=st.sampled_from([UUID(int=n) for n in range(3)]),
        path=PATHS,
        known_at=st.integers(-2, 3).map(lambda n: NOON + n * HOUR / 2),
        lines=st.none() | st.lists(SPANS, max_size=2).map(tuple),
    ),
    max_size=6,
)


@given(FILES, ANCHORS, st.randoms(use_true_random=False))
def test_every_mark_has_a_cause_and_the_order_of_the_input_does_not_matter(
    files: tuple[ChangedFile, ...], anchors: list[Anchored], dice: random.Random
) -> None:
    found = assess(Change((FIRST, LAST), files), anchors, same)
    for mark in found.marks:
        assert any(a.memory == mark.memory and a.known_at < mark.committed_at for a in anchors)
        assert mark.change in {"deleted", "modified", "renamed"}
        assert (mark.grade is Grade.GONE) == (mark.change == "deleted")
        assert mark.path in {file.path for file in files}
    shuffled = (dice.sample(files, len(files)), dice.sample(anchors, len(anchors)))
    again = assess(Change((FIRST, LAST), tuple(shuffled[0])), shuffled[1], same)
    assert combine(again.marks) == combine(found.marks)
    assert again.moves == found.moves


@given(FILES, ANCHORS)
def test_another_doubt_never_makes_a_memory_more_trusted(
    files: tuple[ChangedFile, ...], anchors: list[Anchored]
) -> None:
    marks = assess(Change((FIRST, LAST), files), anchors, same).marks
    order = list(Grade)
    for end in range(len(marks)):
        before, after = combine(marks[:end]), combine(marks[: end + 1])
        for memory, verdict in before.items():
            assert after[memory].score >= verdict.score
            assert order.index(after[memory].grade) >= order.index(verdict.grade)
            assert 0 < after[memory].score <= 1


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 60), st.integers(0, 9))
def test_a_hunk_hits_exactly_when_it_changes_one_of_the_lines(
    start: int, count: int, first: int, length: int
) -> None:
    last = first + length
    changed = set(range(start, start + count))
    expected = 0.8 if changed & set(range(first, last + 1)) else 0.2
    graded = grade_file(file("modified", hunks=((start, count, start, 1),)), ((first, last),))
    assert graded is not None
    assert graded[1] == expected
