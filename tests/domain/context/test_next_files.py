"""Predicting the next files from commits: names of today, what is gone, and the reasons."""

from __future__ import annotations

from reverie.domain.context.next_files import CommittedFile, TouchedFiles, predict_files


def _commits(*commits: tuple[str, ...]) -> list[list[CommittedFile]]:
    """Newest first."""
    return [[CommittedFile(path) for path in paths] for paths in commits]


def test_what_changed_together_comes_before_what_changed_once() -> None:
    other = [("docs/a.md",)] * 3
    commits = _commits(*other, ("src/a.go", "lib/b.go"), ("src/a.go", "lib/b.go"), ("x/c.go",))
    files = predict_files(commits, TouchedFiles(["src/a.go"]), 5)
    order = [file.path for file in files]
    assert order.index("lib/b.go") < order.index("x/c.go")


def test_a_renamed_file_is_predicted_by_its_name_of_today_and_a_deleted_one_never() -> None:
    commits = [
        [CommittedFile("new.go", old_path="old.go")],
        [CommittedFile("gone.go", is_deleted=True)],
        [CommittedFile("old.go"), CommittedFile("gone.go"), CommittedFile("main.go")],
    ]
    paths = {file.path for file in predict_files(commits, TouchedFiles(["main.go"]), 5)}
    assert paths == {"new.go", "main.go"}


def test_a_test_and_its_file_call_for_each_other() -> None:
    rest = [(f"pkg/f{n}.go",) for n in range(45)]
    commits = _commits(*rest, ("src/cart.go",), ("src/cart_test.go",), ("tests/test_cart.py",))
    files = predict_files(commits, TouchedFiles(tests=["e2e/cart.spec.ts"]), 18)
    named = {file.path for file in files if file.reason == "has the same name"}
    assert named == {"src/cart.go", "src/cart_test.go", "tests/test_cart.py"}


def test_without_commits_nothing_is_predicted() -> None:
    assert predict_files([], TouchedFiles(["a.go"]), 5) == []
