"""A clone of a repository, asked through the git binary; nothing in it is changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from reverie.domain.errors import Conflict, Invalid, NotFound, Unavailable

SECONDS: Final = 300.0
ZEROS: Final = "0" * 40
DEEPEN: Final = "fetch all of it: `git fetch --unshallow`, in CI `fetch-depth: 0` or GIT_DEPTH=0"
_NOT_OURS: Final = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"),
    *("GIT_PREFIX", "GIT_NAMESPACE", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE"),
)
"""What git sets for its hooks: a clone is found by its folder alone."""
_HERE: Final = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_ATTRIBUTES: Final = Path(__file__).with_name("git_attributes.txt")


@dataclass(frozen=True)
class Repo:
    """A clone by its top folder; a bare one by git's own."""

    root: Path

    def run(self, *args: str, ok: Sequence[int] = (0,), given: bytes = b"") -> bytes:
        """What git prints, of what is given to it. Raises `Conflict` with git's own words,
        `Unavailable` without git."""
        return _git(self.root, args, ok, given)

    def text(self, *args: str) -> str:
        """What git prints, without the last line end."""
        return self.run(*args).decode(errors="replace").rstrip("\n")

    def commit(self, name: str, field: str = "range") -> str:
        """The commit of a name. Raises `NotFound` that says what to do in a shallow clone."""
        found = self.run("rev-parse", "-q", "--verify", f"{name}^{{commit}}", ok=(0, 1, 128))
        if not found:
            more = f"; this clone is shallow: {DEEPEN}" if self.shallow else ""
            raise NotFoundHere(field, name, more)
        return found.decode().strip()

    def has(self, commit: str) -> bool:
        """Whether the commit is in this clone."""
        return bool(self.run("rev-parse", "-q", "--verify", f"{commit}^{{commit}}", ok=(0, 1, 128)))

    @property
    def shallow(self) -> bool:
        """Whether the clone holds only the end of the history."""
        return self.text("rev-parse", "--is-shallow-repository") == "true"

    @property
    def branch(self) -> str | None:
        """The branch that is checked out; None where none is."""
        return self.run("symbolic-ref", "-q", "--short", "HEAD", ok=(0, 1)).decode().strip() or None

    @property
    def head(self) -> str | None:
        """The commit that is checked out; None before the first."""
        return (
            self.run("rev-parse", "-q", "--verify", "HEAD", ok=(0, 1, 128)).decode().strip() or None
        )

    def setting(self, name: str) -> str | None:
        """What git's configuration says, as `reverie.project`."""
        return self.run("config", "--get", name, ok=(0, 1)).decode().strip() or None

    @property
    def remote(self) -> str | None:
        """`owner/name` or the like, of the address that is fetched from."""
        url = self.setting("remote.origin.url") or ""
        path = url.rstrip("/").removesuffix(".git").rpartition("://")[2].rpartition(":")[2]
        return "/".join(path.split("/")[-2:]) or None

    @property
    def default_branch(self) -> str | None:
        """The branch that `origin` calls its own; else `main` or `master`, if there is one."""
        told = self.run("symbolic-ref", "-q", "--short", "refs/remotes/origin/HEAD", ok=(0, 1))
        if told:
            return told.decode().strip().removeprefix("origin/")
        heads = self.text("for-each-ref", "--format=%(refname:short)", "refs/heads").split()
        return next((name for name in ("main", "master") if name in heads), None)

    @property
    def folder(self) -> Path:
        """Git's own folder, shared by all work trees."""
        path = Path(self.text("rev-parse", "--git-common-dir"))
        return path if path.is_absolute() else self.root / path

    @property
    def empty_tree(self) -> str:
        """Git's name of nothing, to compare a first commit with."""
        return self.text("hash-object", "-t", "tree", os.devnull)

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether everything of `old` is in `new`."""
        return self.run("merge-base", old, new, ok=(0, 1)).decode().strip() == old

    def fork(self, one: str, other: str) -> str | None:
        """The last commit that two have in common."""
        return self.run("merge-base", one, other, ok=(0, 1, 128)).decode().strip() or None

    def before(self, moment: datetime, head: str) -> str | None:
        """The last commit on the way to `head` that was made before a time."""
        told = f"--before={moment.isoformat()}"
        return self.text("rev-list", "-1", "--first-parent", told, head) or None

    def tree(self, commit: str) -> str:
        """Git's name of all content at a commit."""
        return self.text("rev-parse", f"{commit}^{{tree}}")

    def uncommitted(self) -> str | None:
        """A commit of what the work tree's known files hold now; None where nothing differs.

        It is made beside all branches and changes neither index nor files.
        """
        if self.run("ls-files", "--unmerged"):
            return None
        who = ("-c", "user.name=reverie", "-c", "user.email=reverie@localhost")
        return self.text(*who, "stash", "create", "Uncommitted edits") or None

    def diff(self, old: str, new: str) -> bytes:
        """The changes between two trees: names, a NUL, hunks without context."""
        return self.run(
            "-c", f"core.attributesFile={_ATTRIBUTES}", "diff-tree", "-r", "--raw", "-p", "-z",
            "--unified=0", "-M", "-C", "-l2000", "--full-index", "--no-ext-diff",
            "--no-textconv", "--no-color", old, new,
        )  # fmt: skip


@dataclass(eq=False)
class NotFoundHere(NotFound):
    """{what}: no commit {id} in this clone{hint}"""

    hint: str = ""


def open_repo(path: Path) -> Repo:
    """The clone that a folder lies in. Raises `Invalid`."""
    try:
        bare, folder = (
            _git(path, ("rev-parse", "--is-bare-repository", "--absolute-git-dir"), (0,))
            .decode()
            .splitlines()
        )
        if bare == "true":
            return Repo(Path(folder))
        return Repo(Path(_git(path, ("rev-parse", "--show-toplevel"), (0,)).decode().rstrip("\n")))
    except Conflict as error:
        raise Invalid("repo", f"{path}: {error}") from None


def _git(folder: Path, args: Sequence[str], ok: Sequence[int], given: bytes = b"") -> bytes:
    try:
        done = subprocess.run(  # noqa: S603
            ["git", *args],  # noqa: S607
            cwd=folder,
            capture_output=True,
            input=given,
            env={**{k: v for k, v in os.environ.items() if k not in _NOT_OURS}, **_HERE},
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError:
        if not folder.is_dir():
            raise Invalid("repo", f"{folder} is no folder") from None
        raise Unavailable("git", "install it, or put it on the PATH") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"git {args[0]}", f"it took more than {SECONDS:g} seconds") from None
    if done.returncode not in ok:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it failed"]
        raise Conflict(f"git {args[0]}: {said[0]}")
    return done.stdout
