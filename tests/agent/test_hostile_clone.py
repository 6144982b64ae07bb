"""What a folder with a hostile `.git` cannot do: run programs, follow links, or stop commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from reverie.agent.git.anchoring import locate_text
from reverie.agent.git.announcement_log import ChangeReceipt
from reverie.agent.git.announcements import announce_new_commits, announce_push
from reverie.agent.git.backfill import HistoryRange, backfill_history
from reverie.agent.git.change_builder import CommitRange
from reverie.agent.git.commit_ranges import PushInfo, resolve_range
from reverie.agent.git.repository import open_repository
from reverie.domain.core.errors import Conflict, InvalidInput
from tests.support.git_clone import Clone, new_clone

SOURCE = "def loop():\n    return 1\n"


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    made = new_clone(tmp_path / "clone")
    made.commit("Begin", {"src/loop.py": SOURCE, "b.py": SOURCE})
    made.git("switch", "-q", "-c", "feat/x")
    made.commit("On the branch", {"b.py": SOURCE.replace("1", "2")})
    made.git("switch", "-q", "main")
    made.git("merge", "-q", "--squash", "feat/x")
    made.commit("Squash")
    return made


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """The file in which a hostile program leaves its mark."""
    return tmp_path / "marks"


def _marks_left(marks: Path) -> str:
    return marks.read_text() if marks.exists() else ""


def _hostile_program(folder: Path, marks: Path) -> Path:
    path = folder / "program"
    path.write_text(f'#!/bin/sh\necho "$0 $*" >> {marks}\nexit 1\n')
    path.chmod(0o755)
    return path


def _sign_head(clone: Clone) -> None:
    """Gives the checked-out commit a signature, so that git has something to verify."""
    commit = clone.git("cat-file", "commit", "HEAD")
    head, _, message = commit.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    path = clone.root.parent / "signed"
    path.write_text(f"{head}\n{signature}\n\n{message}\n")
    signed = clone.git("hash-object", "-t", "commit", "-w", str(path))
    clone.git("update-ref", "refs/heads/main", signed)


def _link_to_files(link: Path, folder: Path) -> None:
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.json").write_text("{}")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(folder / "0.json" if link.suffix else folder)


def _texts(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir()}


def _rename(path: Path, to: Path) -> Path:
    return path.rename(to)


def _make_pipe(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)


async def _accept(document: dict[str, Any]) -> ChangeReceipt:
    return ChangeReceipt(is_duplicate=False)


def _set_hostile_config(clone: Clone, program: Path) -> None:
    names = (
        *("core.fsmonitor", "gpg.program", "diff.external", "diff.evil.textconv"),
        *("diff.evil.command", "filter.evil.clean", "filter.evil.process", "filter.a=b.clean"),
    )
    for name in names:
        clone.git("config", name, f"{program} {name}")
    clone.git("config", "log.showSignature", "true")
    clone.git("config", "filter.evil.required", "true")
    (clone.root / ".git/info").mkdir(exist_ok=True)
    (clone.root / ".git/info/attributes").write_text(
        "src/*.py diff=evil filter=evil\nb.py diff=evil filter=a=b\n"
    )
    for hook in ("post-index-change", "reference-transaction"):
        (clone.root / ".git/hooks").mkdir(exist_ok=True)
        (clone.root / ".git/hooks" / hook).symlink_to(program)


async def test_no_program_of_a_clone_s_configuration_runs(
    clone: Clone, marks: Path, tmp_path: Path
) -> None:
    _sign_head(clone)
    program = _hostile_program(tmp_path, marks)
    _set_hostile_config(clone, program)
    repo = open_repository(clone.root)
    ends = resolve_range(repo, PushInfo(range="HEAD~1..HEAD"))
    outcome = await announce_push(repo, "shop", ends, _accept)
    assert outcome.change.merged == ["feat/x"]
    clone.write({"src/loop.py": f"{SOURCE}# more\n", "b.py": f"{SOURCE}# more\n"})
    [edits] = await announce_new_commits(repo, "shop", _accept, include_edits=True)
    assert {file.path for file in edits.change.files} == {"src/loop.py", "b.py"}
    assert locate_text(repo, "`loop` in src/loop.py and b.py runs twice").blobs
    assert not _marks_left(marks)


async def test_no_program_of_a_bare_repository_inside_a_clone_runs(
    clone: Clone, marks: Path, tmp_path: Path
) -> None:
    _sign_head(clone)
    _set_hostile_config(clone, _hostile_program(tmp_path, marks))
    clone.git("config", "core.bare", "true")
    repo = open_repository(_rename(clone.root / ".git", clone.root / "docs"))
    ends = resolve_range(repo, PushInfo(range="HEAD~1..HEAD", branch="main"))
    await announce_push(repo, "shop", ends, _accept)
    assert not _marks_left(marks)


@pytest.mark.parametrize("protocol", ["ext", "uploadpack", "ssh"])
async def test_a_missing_object_is_not_fetched_by_a_program_of_the_clone(
    protocol: str, clone: Clone, marks: Path, tmp_path: Path
) -> None:
    program = _hostile_program(tmp_path, marks)
    url = {"ext": f"ext::{program}", "uploadpack": str(tmp_path), "ssh": "ssh://host.invalid/x"}
    clone.git("config", "remote.origin.url", url[protocol])
    clone.git("config", "remote.origin.uploadpack", str(program))
    clone.git("config", "remote.origin.promisor", "true")
    clone.git("config", "core.sshCommand", str(program))
    clone.git("config", "protocol.allow", "always")
    clone.git("config", f"protocol.{protocol}.allow", "always")
    clone.git("config", "extensions.partialClone", "origin")
    blob = clone.git("rev-parse", "HEAD:b.py")
    _rename(clone.root / ".git/objects" / blob[:2] / blob[2:], tmp_path / "blob")
    repo = open_repository(clone.root)
    ends = CommitRange("main", repo.resolve_commit("HEAD~1"), repo.resolve_commit("HEAD"))
    with pytest.raises(Conflict):
        await announce_push(repo, "shop", ends, _accept)
    assert not _marks_left(marks)


def test_a_program_of_the_user_s_own_configuration_still_runs(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "gitconfig"
    own.write_text('[filter "own"]\n\tclean = sed s/1/7/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    clone.git("config", "filter.own.clean", "false")
    (clone.root / ".git/info").mkdir(exist_ok=True)
    (clone.root / ".git/info/attributes").write_text("*.py filter=own\n")
    location = locate_text(open_repository(clone.root), "`loop` in src/loop.py runs twice")
    seven = tmp_path / "seven"
    seven.write_text(SOURCE.replace("1", "7"))
    assert location.blobs == {"src/loop.py": clone.git("hash-object", "--no-filters", str(seven))}


@pytest.mark.parametrize("place", ["reverie", "reverie/spool", "reverie/announced.json"])
async def test_announcements_write_and_delete_nothing_through_a_link_in_git_s_folder(
    place: str, clone: Clone, tmp_path: Path
) -> None:
    mine, link = tmp_path / "mine", clone.root / ".git" / place
    _link_to_files(link, mine)
    repo = open_repository(clone.root)
    ends = resolve_range(repo, PushInfo(range="HEAD~1..HEAD"))
    with pytest.raises(InvalidInput, match="is a link"):
        await announce_push(repo, "shop", ends, _accept)
    assert _texts(mine) == {f"{number}.json": "{}" for number in range(3)}


@pytest.mark.parametrize("place", ["reverie", "reverie/backfill.json"])
async def test_a_backfill_writes_nothing_through_a_link_in_git_s_folder(
    place: str, clone: Clone, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    _link_to_files(clone.root / ".git" / place, mine)
    repo = open_repository(clone.root)
    history = HistoryRange("shop", "main", repo.head_commit or "")
    with pytest.raises(InvalidInput, match="is a link"):
        await backfill_history(repo, history, _accept, lambda sent, total: None)
    assert _texts(mine) == {f"{number}.json": "{}" for number in range(3)}


async def test_announcements_wait_for_no_pipe_in_git_s_folder(clone: Clone) -> None:
    _make_pipe(clone.root / ".git/reverie/spool/1-a.json")
    repo = open_repository(clone.root)
    ends = resolve_range(repo, PushInfo(range="HEAD~1..HEAD"))
    assert (await announce_push(repo, "shop", ends, _accept)).state == "announced"
    _make_pipe(clone.root / ".git/reverie/announced.json")
    with pytest.raises(InvalidInput, match="not a regular file"):
        await announce_push(repo, "shop", ends, _accept)


def test_a_file_behind_a_linked_folder_is_not_read(clone: Clone, tmp_path: Path) -> None:
    private = tmp_path / "private"
    (clone.root / "src").rename(private)
    (private / "loop.py").write_text("def loop():\n    secret\n\ndef secret_of_mine():\n    pass\n")
    (clone.root / "src").symlink_to(private)
    location = locate_text(
        open_repository(clone.root), "`loop` and `secret_of_mine` in src/loop.py run twice"
    )
    assert location.blobs == {"src/loop.py": clone.git("rev-parse", "HEAD:src/loop.py")}
    assert "secret_of_mine" not in str(location.symbols)
