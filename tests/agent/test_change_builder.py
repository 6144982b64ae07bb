"""Git changes built from commits, pushes and merges in real repositories."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reverie.agent.git.change_builder import CommitRange, build_git_change
from reverie.agent.git.commit_ranges import PushInfo, detect_push, resolve_range
from reverie.agent.git.repository import open_repository
from reverie.contracts.memories.git import FileChange, GitChange
from reverie.domain.core.errors import Conflict, InvalidInput, NotFound
from tests.support.git_clone import Clone, new_clone, numbered

PYTHON = '''\
class Loop:
    def run(self):
        """Run."""
        return self.step(1)

    def step(self, n):
        return n

def helper(value):
    total = value + 1
    total = total * 2
    print("helping", total)
    return total
'''


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return new_clone(tmp_path / "clone")


def change_of(clone: Clone, text: str, **more: Any) -> GitChange:
    """The change of a range, as it goes over the wire."""
    ends = resolve_range(clone.repo, PushInfo(range=text, **more))
    document = build_git_change(clone.repo, "shop", ends).model_dump(
        mode="json", exclude_defaults=True
    )
    return GitChange.model_validate_json(json.dumps(document))


def by_path(change: GitChange) -> dict[str, FileChange]:
    return {file.path: file for file in change.files}


def test_each_kind_of_file_change_is_described_with_its_lines(clone: Clone) -> None:
    before = clone.commit(
        "Begin",
        {
            "loop.py": PYTHON,
            "moved.txt": numbered(30),
            "copied.txt": numbered(20, _1="head"),
            "gone.txt": numbered(3),
            "run.sh": "#!/bin/sh\n",
            "image.bin": "\0one",
            "naïve name.txt": "x\n",
            "bad\nname.txt": "x\n",
            "link": "a file yet\n",
        },
    )
    (clone.root / "moved.txt").rename(clone.root / "there.txt")
    (clone.root / "link").unlink()
    (clone.root / "link").symlink_to("loop.py")
    os.chmod(clone.root / "run.sh", 0o755)
    after = clone.commit(
        "Change all",
        {
            "loop.py": PYTHON.replace("return n\n", "return n + STEP\n"),
            "there.txt": numbered(30, _7="seven"),
            "copied.txt": numbered(20, _1="head", _2="two"),
            "copy.txt": numbered(20, _1="head"),
            "gone.txt": None,
            "image.bin": "\0two",
            "naïve name.txt": "x\ny\n",
            "bad\nname.txt": "y\n",
            "new.txt": "new\n",
        },
    )
    change = change_of(clone, f"{before}..{after}")
    files = by_path(change)
    assert {path: (file.status, file.old_path) for path, file in files.items()} == {
        "copied.txt": ("modified", None),
        "copy.txt": ("copied", "copied.txt"),
        "gone.txt": ("deleted", None),
        "image.bin": ("modified", None),
        "link": ("modified", None),
        "loop.py": ("modified", None),
        "naïve name.txt": ("modified", None),
        "new.txt": ("added", None),
        "run.sh": ("mode", None),
        "there.txt": ("renamed", "moved.txt"),
    }
    assert {path for path, file in files.items() if file.binary} == {"image.bin", "link"}
    [hunk] = files["loop.py"].hunks
    assert (hunk.line_ranges, hunk.kind, hunk.header) == (
        (7, 1, 7, 1),
        "code",
        "def step(self, n):",
    )
    assert (hunk.symbols, hunk.identifiers) == (["step"], ["STEP"])
    assert [h.line_ranges for h in files["there.txt"].hunks] == [(7, 1, 7, 1)]
    assert [h.line_ranges for h in files["gone.txt"].hunks] == [(1, 3, 0, 0)]
    assert files["there.txt"].similarity == pytest.approx(0.9, abs=0.1)
    assert files["loop.py"].old_blob == clone.git("rev-parse", f"{before}:loop.py")
    assert files["loop.py"].new_blob == clone.git("rev-parse", f"{after}:loop.py")
    assert (files["new.txt"].old_blob, files["gone.txt"].new_blob) == (None, None)
    counts = clone.git("diff", "--numstat", "-M", "-C", before, after)
    for line in counts.splitlines():
        added, removed, name = line.split("\t")
        if name not in files or files[name].binary or name == "new.txt":
            continue
        lines = [h.line_ranges for h in files[name].hunks]
        assert (sum(h[3] for h in lines), sum(h[1] for h in lines)) == (int(added), int(removed))
    assert [(one.sha, one.subject) for one in change.commits] == [(after, "Change all")]
    assert (change.forced, change.merge, change.deleted) == (False, False, False)


def test_commits_are_described_in_order_and_a_merge_names_the_commits_it_brought(
    clone: Clone,
) -> None:
    begin = clone.commit("Begin", {"a.txt": numbered(20), "b.txt": numbered(20)})
    clone.git("switch", "-q", "-c", "feat/x")
    inner = clone.commit("Inside", {"b.txt": numbered(20, _9="nine")})
    clone.git("switch", "-q", "main")
    first = clone.commit("First", {"a.txt": "zero\n" + numbered(20)})
    second = clone.commit("Second", {"a.txt": "zero\n" + numbered(20, _5="five")})
    merge = clone.merge("feat/x")
    clone.git("revert", "--no-edit", second)
    last = clone.git("rev-parse", "HEAD")
    change = change_of(clone, f"{begin}..{last}", repository="us/shop", default_branch="main")
    steps = [(f.path, f.commit, [h.line_ranges for h in f.hunks]) for f in change.files]
    assert steps == [
        ("a.txt", first, [(0, 0, 1, 1)]),
        ("a.txt", second, [(6, 1, 6, 1)]),
        ("b.txt", inner, [(9, 1, 9, 1)]),
        ("a.txt", last, [(6, 1, 6, 1)]),
    ]
    assert change.files[3].new_blob == change.files[1].old_blob
    commits = {one.sha: one for one in change.commits}
    assert commits[last].reverts == second
    assert commits[merge].parents == [second, inner]
    assert commits[inner].merged_at == commits[merge].committed_at > commits[inner].committed_at
    assert commits[first].merged_at is None
    assert (change.merge, change.merged, change.default_branch) == (True, ["feat/x"], "main")
    quick = change_of(clone, f"{begin}..{merge}")
    clone.git("branch", "-q", "-m", "feat/x", "renamed")
    clone.git("switch", "-q", "-c", "other", first)
    clone.merge("renamed", "-m", "Bring it in")
    assert (quick.merged, change_of(clone, f"{first}..other").merged) == (
        ["feat/x"],
        ["renamed"],
    )


def test_force_pushes_first_pushes_and_branch_deletions_are_marked_as_such(
    clone: Clone, tmp_path: Path
) -> None:
    root = clone.commit("Begin", {"a.txt": numbered(9)})
    old = clone.commit("Old", {"a.txt": numbered(9, _2="two")})
    clone.git("reset", "-q", "--hard", root)
    new = clone.commit("New", {"a.txt": numbered(9, _8="eight")})
    forced = change_of(clone, f"{old}..{new}")
    assert forced.forced
    assert [h.line_ranges for h in forced.files[0].hunks] == [(2, 1, 2, 1), (8, 1, 8, 1)]
    assert [one.sha for one in forced.commits] == [new]
    back = change_of(clone, f"{new}..{root}")
    assert (back.forced, [one.sha for one in back.commits]) == (True, [root])
    assert change_of(clone, f"{old}...{new}").before == root
    zeros = "0" * 40
    first = change_of(clone, f"{zeros}..{new}")
    assert (first.before, [(f.path, f.status) for f in first.files]) == (
        None, [("a.txt", "added"), ("a.txt", "modified")],
    )  # fmt: skip
    clone.git("switch", "-q", "-c", "feat/y")
    mine = clone.commit("Mine", {"b.txt": "b\n"})
    branch = change_of(clone, f"..{mine}")
    assert (branch.branch, branch.before) == ("feat/y", None)
    assert [(f.path, f.commit) for f in branch.files] == [("b.txt", mine)]
    ended = change_of(clone, f"{mine}..{zeros}", branch="feat/y")
    assert (ended.deleted, ended.after, ended.deduplication_key) == (
        True,
        None,
        f"deleted after {mine}",
    )
    for text in ("main", "--output=x..HEAD", "a..b..c"):
        with pytest.raises((InvalidInput, NotFound)) as wrong:
            change_of(clone, text)
        assert "range" in str(wrong.value)
    clone.git("checkout", "-q", "--detach")
    with pytest.raises(InvalidInput, match="branch"):
        change_of(clone, f"{root}..{new}")
    with pytest.raises(InvalidInput, match="git rev-parse"):
        open_repository(tmp_path)
    clone.git("clone", "-q", "--depth=1", f"file://{clone.root}", "-b", "main", str(tmp_path / "s"))
    shallow = Clone(tmp_path / "s")
    for text in (f"{root}..HEAD", f"{zeros}..HEAD"):
        with pytest.raises((Conflict, NotFound), match="--unshallow"):
            change_of(shallow, text)


def test_moved_lines_and_changed_definitions_are_described(clone: Clone) -> None:
    before = clone.commit("Begin", {"loop.py": PYTHON, "other.py": "import os\n\nX = os\n"})
    rest, _, helper = PYTHON.partition("def helper")
    leaping = rest.replace("def step(self, n)", "def leap(self, n)")
    moved = f"import os\n\nX = os\n\n\ndef helper{helper}"
    after = clone.commit("Move it", {"loop.py": leaping, "other.py": moved})
    files = by_path(change_of(clone, f"{before}..{after}"))
    [run] = files["loop.py"].moved
    assert (run.path, run.old_start, run.lines, run.new_start) == ("other.py", 9, 5, 6)
    assert run.similarity == 1.0
    assert [(s.name, s.change, s.path) for s in files["loop.py"].symbols] == [
        ("step", "removed", None),
        ("helper", "moved", "other.py"),
        ("leap", "added", None),
    ]


def test_lines_that_look_like_git_output_are_read_as_content(clone: Clone) -> None:
    odd = "Binary files a and b differ\n-- x\n++ y\n@@ -1 +1 @@\ndiff --git a/x b/x\n"
    before = clone.commit("Begin", {"odd.txt": odd, "z.txt": "z\n"})
    after = clone.commit("Double", {"odd.txt": odd * 2, "z.txt": "y\n"})
    last = clone.commit("Clear", {"odd.txt": "\n", "z.txt": "y"})
    change = change_of(clone, f"{before}..{last}")
    assert [(f.path, f.commit, [h.line_ranges for h in f.hunks]) for f in change.files] == [
        ("odd.txt", after, [(5, 0, 6, 5)]),
        ("z.txt", after, [(1, 1, 1, 1)]),
        ("odd.txt", last, [(1, 10, 1, 1)]),
        ("z.txt", last, [(1, 1, 1, 1)]),
    ]
    assert [h.kind for h in change.files[3].hunks] == ["space"]
    assert not any(f.binary for f in change.files)


def test_a_push_is_recognized_from_ci_variables(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps(
        {"before": "a" * 40, "after": "b" * 40, "repository": {"default_branch": "trunk"}}
    ))  # fmt: skip
    github = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(event), "GITHUB_REF_NAME": "x/y",
              "GITHUB_REPOSITORY": "us/shop"}  # fmt: skip
    assert detect_push(github) == PushInfo(f"{'a' * 40}..{'b' * 40}", "x/y", "us/shop", "trunk")
    gitlab = {"GITLAB_CI": "true", "CI_COMMIT_BEFORE_SHA": "0" * 40, "CI_COMMIT_SHA": "b" * 40,
              "CI_COMMIT_BRANCH": "x", "CI_PROJECT_PATH": "us/shop", "CI_DEFAULT_BRANCH": "main",
    }  # fmt: skip
    assert detect_push(gitlab) == PushInfo(f"{'0' * 40}..{'b' * 40}", "x", "us/shop", "main")
    event.write_text("[")
    assert detect_push(github).range is None
    assert detect_push({}) == PushInfo()


def test_a_long_range_is_described_as_one_comparison_with_the_commits_to_blame(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = clone.commit("Begin", {"a.txt": numbered(9), "b.txt": numbered(9)})
    one = clone.commit("One", {"a.txt": numbered(9, _1="x")})
    two = clone.commit("Two", {"b.txt": numbered(9, _1="x")})
    clone.commit("Three", {"c.txt": "c\n"})
    monkeypatch.setattr("reverie.agent.git.change_builder.MAX_STEPS", 2)
    change = build_git_change(
        clone.repo, "shop", CommitRange("main", begin, clone.repo.head_commit)
    )
    assert {f.path: f.commit for f in change.files if f.hunks} == {"a.txt": one, "b.txt": two}
    size = len(change.model_dump_json(exclude_defaults=True))
    monkeypatch.setattr("reverie.agent.git.change_builder.MAX_CHANGE_BYTES", size - 1)
    short = build_git_change(clone.repo, "shop", CommitRange("main", begin, clone.repo.head_commit))
    assert [(f.path, f.truncated) for f in short.files] == [
        ("a.txt", True), ("b.txt", True), ("c.txt", False),
    ]  # fmt: skip
    monkeypatch.setattr("reverie.agent.git.change_builder.MAX_CHANGE_BYTES", 100)
    with pytest.raises(Conflict, match="too large to announce at once"):
        build_git_change(clone.repo, "shop", CommitRange("main", begin, clone.repo.head_commit))


def test_a_squash_a_rebase_and_a_fast_forward_name_the_branch_they_brought_in(clone: Clone) -> None:
    begin = clone.commit("Begin", {"a.txt": numbered(20), "b.txt": numbered(20)})
    for name in ("feat/squashed", "feat/rebased", "feat/open", "feat/fresh"):
        clone.git("branch", "-q", name)
    for name, files in (
        ("feat/squashed", [{"a.txt": numbered(20, _3="3")}, {"a.txt": numbered(20, _3="three")}]),
        ("feat/rebased", [{"c.txt": "c\n"}, {"c.txt": "c\nd\n"}]),
        ("feat/open", [{"d.txt": "d\n"}]),
    ):
        clone.git("switch", "-q", name)
        for n, file in enumerate(files):
            clone.commit(f"{name} {n}", file)
    clone.git("switch", "-q", "main")
    clone.commit("Meanwhile", {"b.txt": numbered(20, _9="nine")})
    clone.git("merge", "-q", "--squash", "feat/squashed")
    squash = clone.commit("Squash it (#12)")
    assert change_of(clone, f"{begin}..{squash}").merged == ["feat/squashed"]
    clone.git("branch", "-q", "spare", "feat/rebased")
    clone.git("rebase", "-q", "main", "spare")
    clone.git("switch", "-q", "main")
    clone.git("merge", "-q", "--ff-only", "spare")
    clone.git("branch", "-q", "-D", "spare")
    rebased = clone.git("rev-parse", "HEAD")
    assert change_of(clone, f"{squash}..{rebased}").merged == ["feat/rebased"]
    clone.git("switch", "-q", "-c", "feat/ahead")
    clone.commit("Ahead", {"e.txt": "e\n"})
    clone.git("switch", "-q", "main")
    clone.git("merge", "-q", "--ff-only", "feat/ahead")
    clone.git("branch", "-q", "feat/next")
    ahead = clone.git("rev-parse", "HEAD")
    found = change_of(clone, f"{rebased}..{ahead}")
    assert (found.merge, found.merged) == (False, ["feat/ahead"])
    assert change_of(clone, f"{begin}..feat/open", branch="feat/open").merged == []
