"""A git repository, read through the git command. Nothing in the work tree is changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final

from reverie.agent.git.clone_config import (
    ALLOWED_PROTOCOLS,
    DIFF_COMMANDS,
    DIFF_OPTIONS,
    FIXED_VALUES,
    PROGRAM_SETTINGS,
    ConfigValue,
    encode_config,
    parse_overrides,
)
from reverie.domain.core.errors import Conflict, InvalidInput, NotFound, Unavailable

GIT_TIMEOUT_SECONDS: Final = 300.0
UNSHALLOW_HINT: Final = (
    "fetch all of it: `git fetch --unshallow`, in CI `fetch-depth: 0` or GIT_DEPTH=0"
)
_GIT_HOOK_VARIABLES: Final = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"),
    *("GIT_PREFIX", "GIT_NAMESPACE", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE"),
)
"""Variables that git sets for its hooks. They are removed: the folder alone selects the clone."""
_GIT_ENVIRONMENT: Final = {
    "GIT_ALLOW_PROTOCOL": ALLOWED_PROTOCOLS,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_ATTRIBUTES_FILE: Final = Path(__file__).with_name("git_attributes.txt")


@dataclass(frozen=True)
class GitRepository:
    """A clone by its top folder; a bare one by git's own."""

    root: Path

    def run(
        self,
        *args: str,
        exit_codes: Sequence[int] = (0,),
        stdin: bytes = b"",
        config: Sequence[ConfigValue] = (),
    ) -> bytes:
        """Runs git with the given input and returns its output.

        No program runs that the clone's configuration names. Raises `Conflict` with git's message,
        and `Unavailable` if git is missing.
        """
        return _run_git(self.root, args, exit_codes, stdin, (*self._config_overrides, *config))

    @cached_property
    def _config_overrides(self) -> list[ConfigValue]:
        query = ("config", "-z", "--show-scope", "--get-regexp", PROGRAM_SETTINGS)
        return parse_overrides(_run_git(self.root, query, (0, 1)))

    def run_text(self, *args: str) -> str:
        """Runs git and returns its output as text, without the last line end."""
        return self.run(*args).decode(errors="replace").rstrip("\n")

    def _find(self, *args: str, exit_codes: Sequence[int] = (0, 1)) -> str | None:
        """Runs git for one answer; None if it gives none."""
        return self.run(*args, exit_codes=exit_codes).decode().strip() or None

    def _find_commit(self, name: str) -> str | None:
        options = ("-q", "--verify", f"{name}^{{commit}}")
        return self._find("rev-parse", *options, exit_codes=(0, 1, 128))

    def resolve_commit(self, name: str, field: str = "range") -> str:
        """Resolves a name to a commit.

        Raises `NotFound`, with a hint for shallow clones.
        """
        commit = self._find_commit(name)
        if commit is None:
            hint = f"; this clone is shallow: {UNSHALLOW_HINT}" if self.is_shallow else ""
            raise CommitNotFound(field, name, hint)
        return commit

    def has_commit(self, commit: str) -> bool:
        """Returns whether the clone contains the commit."""
        return self._find_commit(commit) is not None

    @property
    def is_shallow(self) -> bool:
        """Returns whether the clone contains only the end of the history."""
        return self.run_text("rev-parse", "--is-shallow-repository") == "true"

    @property
    def current_branch(self) -> str | None:
        """Returns the checked-out branch; None if there is none."""
        return self._find("symbolic-ref", "-q", "--short", "HEAD")

    @property
    def head_commit(self) -> str | None:
        """Returns the checked-out commit; None before the first commit."""
        return self._find_commit("HEAD")

    def config_value(self, name: str) -> str | None:
        """Returns a value of git's configuration, such as `reverie.project`."""
        return self._find("config", "--get", name)

    @property
    def remote_name(self) -> str | None:
        """`owner/name` or the like, of the address that is fetched from."""
        url = self.config_value("remote.origin.url") or ""
        path = url.rstrip("/").removesuffix(".git").rpartition("://")[2].rpartition(":")[2]
        return "/".join(path.split("/")[-2:]) or None

    @property
    def default_branch(self) -> str | None:
        """The branch that `origin` calls its own; else `main` or `master`, if there is one."""
        if head := self._find("symbolic-ref", "-q", "--short", "refs/remotes/origin/HEAD"):
            return head.removeprefix("origin/")
        heads = self.run_text("for-each-ref", "--format=%(refname:short)", "refs/heads").split()
        return next((name for name in ("main", "master") if name in heads), None)

    @property
    def git_folder(self) -> Path:
        """Git's own folder, shared by all work trees."""
        path = Path(self.run_text("rev-parse", "--git-common-dir"))
        return path if path.is_absolute() else self.root / path

    @property
    def empty_tree(self) -> str:
        """Git's name of nothing, to compare a first commit with."""
        return self.run_text("hash-object", "-t", "tree", os.devnull)

    def is_ancestor(self, old: str, new: str) -> bool:
        """Returns whether `new` contains all commits of `old`."""
        return self._find("merge-base", old, new) == old

    def merge_base(self, first: str, second: str) -> str | None:
        """The last commit that two have in common."""
        return self._find("merge-base", first, second, exit_codes=(0, 1, 128))

    def last_commit_before(self, at: datetime, head: str) -> str | None:
        """The last commit on the way to `head_commit` that was made before a time."""
        option = f"--before={at.isoformat()}"
        return self.run_text("rev-list", "-1", "--first-parent", option, head) or None

    def tree_id(self, commit: str) -> str:
        """Git's name of all content at a commit."""
        return self.run_text("rev-parse", f"{commit}^{{tree}}")

    def snapshot_uncommitted(self) -> str | None:
        """Returns a commit of the tracked files as they are now; None if nothing differs.

        The commit is on no branch. Neither the index nor files change.
        """
        if self.run("ls-files", "--unmerged"):
            return None
        identity = (("user.name", "reverie"), ("user.email", "reverie@localhost"))
        commit = self.run("stash", "create", "Uncommitted edits", config=identity)
        return commit.decode().strip() or None

    def diff(self, old: str, new: str) -> bytes:
        """The changes between two trees: names, a NUL, hunks without context."""
        return self.run(
            "diff-tree", "-r", "--raw", "-p", "-z", "--unified=0", "-M", "-C", "-l2000",
            "--full-index", "--no-color", old, new,
            config=(("core.attributesFile", str(_ATTRIBUTES_FILE)),),
        )  # fmt: skip


@dataclass(eq=False)
class CommitNotFound(NotFound):
    """{what}: no commit {id} in this clone{hint}"""

    hint: str = ""


def open_repository(path: Path) -> GitRepository:
    """Opens the clone that contains a folder. Raises `InvalidInput` if there is none."""
    try:
        is_bare, folder = (
            _run_git(path, ("rev-parse", "--is-bare-repository", "--absolute-git-dir"), (0,))
            .decode()
            .splitlines()
        )
        if is_bare == "true":
            return GitRepository(Path(folder))
        return GitRepository(
            Path(_run_git(path, ("rev-parse", "--show-toplevel"), (0,)).decode().rstrip("\n"))
        )
    except Conflict as error:
        raise InvalidInput("repo", f"{path}: {error}") from None


def _run_git(
    folder: Path,
    args: Sequence[str],
    exit_codes: Sequence[int],
    stdin: bytes = b"",
    config: Sequence[ConfigValue] = (),
) -> bytes:
    command, *rest = args
    options = DIFF_OPTIONS if command in DIFF_COMMANDS else ()
    try:
        completed = subprocess.run(  # noqa: S603
            ["git", command, *options, *rest],  # noqa: S607
            cwd=folder,
            capture_output=True,
            input=stdin,
            env={
                **{k: v for k, v in os.environ.items() if k not in _GIT_HOOK_VARIABLES},
                **_GIT_ENVIRONMENT,
                **dict(encode_config((*FIXED_VALUES, *config), os.environ)),
            },
            timeout=GIT_TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        if not folder.is_dir():
            raise InvalidInput("repo", f"{folder} is no folder") from None
        raise Unavailable("git", "install it, or put it on the PATH") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"git {args[0]}", f"it took more than {GIT_TIMEOUT_SECONDS:g} seconds"
        ) from None
    if completed.returncode not in exit_codes:
        error_lines = completed.stderr.decode(errors="replace").strip().splitlines() or [
            "it failed"
        ]
        raise Conflict(f"git {args[0]}: {error_lines[0]}")
    return completed.stdout
