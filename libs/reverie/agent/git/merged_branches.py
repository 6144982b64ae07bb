"""Detects which branches new commits merged: by merge, squash, rebase or fast-forward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reverie.agent.git.repository import GitRepository
from reverie.domain.staleness.file_changes import parse_merged_branch

MAX_COMPARED_BRANCHES = 50
MAX_COMPARED_COMMITS = 50
"""Number of recent branches and commits that are compared with each other."""
MAX_MERGED_BRANCHES = 100
_BRANCH_REFS = ("refs/heads", "refs/remotes")


@dataclass(frozen=True)
class LoggedCommit:
    """A commit as git logs it."""

    sha: str
    parents: tuple[str, ...]
    committed_at: str
    subject: str
    reverts: str | None
    body: str = ""


def find_merged_branches(
    repo: GitRepository, commits: Sequence[LoggedCommit], target: str, default_branch: str | None
) -> list[str]:
    """Finds the branches that commits, oldest first, brought into a branch.

    A merge is found by its subject, or by the head that it merged. A squash contains the changes of
    the whole branch; rebased commits contain those of each commit. A branch that main was
    fast-forwarded to was committed here, commit by commit. The last three are searched on
    `default_branch` only.
    """
    names = dict[str, None]()
    for commit in commits:
        if len(commit.parents) > 1:
            merged = parse_merged_branch(commit.subject)
            names |= dict.fromkeys([merged] if merged else _branches_at(repo, commit.parents[1:]))
    if default_branch in {None, target}:
        names |= dict.fromkeys(_branches_without_merge_commit(repo, commits))
    plain = dict.fromkeys(name.removeprefix("origin/") for name in names)
    plain.pop(target, None)
    return list(plain)[:MAX_MERGED_BRANCHES]


def _branches_at(repo: GitRepository, commits: Sequence[str]) -> list[str]:
    """Returns the branches whose heads are these commits."""
    options = [f"--points-at={sha}" for sha in commits]
    branches = repo.run_text(
        "for-each-ref", "--format=%(refname:lstrip=2)", *options, *_BRANCH_REFS
    ).split()
    return [name for name in branches if not name.endswith("/HEAD")]


def _branches_without_merge_commit(
    repo: GitRepository, commits: Sequence[LoggedCommit]
) -> Iterator[str]:
    plain_commits = [commit.sha for commit in commits if len(commit.parents) < 2]
    if not plain_commits:
        return
    end, new = commits[-1].sha, {commit.sha for commit in commits}
    compared = plain_commits[-MAX_COMPARED_COMMITS:]
    names = repo.run("show", "--name-only", "--no-renames", "-z", "--format=", *compared, "--")
    changes = (_parse_file_names(names), _patch_ids_of(repo, compared))
    for ref, tip in _recent_branches(repo):
        if tip in new:
            if _was_committed_locally(repo, ref, tip):
                yield ref
        elif _is_contained(repo, end, tip, *changes):
            yield ref


def _is_contained(
    repo: GitRepository, end: str, tip: str, file_names: frozenset[str], patch_ids: frozenset[str]
) -> bool:
    """Returns whether a branch's changes, in total or per commit, are among the given changes."""
    fork = repo.merge_base(end, tip)
    if fork is None or fork == tip:
        return False
    branch_files = repo.run("diff", "--name-only", "--no-renames", "-z", fork, tip)
    if not _parse_file_names(branch_files) <= file_names:
        return False
    if _compute_patch_ids(repo, repo.run("diff", "--unified=0", fork, tip)) & patch_ids:
        return True
    output = repo.run_text(
        "rev-list", "--no-merges", f"--max-count={MAX_COMPARED_COMMITS + 1}", f"{fork}..{tip}"
    )
    commits = output.split()
    branch_patch_ids = (
        _patch_ids_of(repo, commits) if len(commits) <= MAX_COMPARED_COMMITS else frozenset[str]()
    )
    return bool(branch_patch_ids) and branch_patch_ids <= patch_ids


def _patch_ids_of(repo: GitRepository, commits: Sequence[str]) -> frozenset[str]:
    """Returns git's patch ids of each commit's change; they do not depend on line numbers."""
    patches = repo.run("show", "--unified=0", "--format=commit %H", *commits, "--")
    return _compute_patch_ids(repo, patches)


def _compute_patch_ids(repo: GitRepository, patches: bytes) -> frozenset[str]:
    output = repo.run("patch-id", "--stable", stdin=patches).decode()
    return frozenset(line.split()[0] for line in output.splitlines())


def _was_committed_locally(repo: GitRepository, ref: str, tip: str) -> bool:
    """Returns whether commits were made on the branch in this clone.

    A branch that only starts here has none.
    """
    head = f"refs/heads/{ref}"
    output = repo.run("reflog", "show", "--format=%H %gs", head, "--", exit_codes=(0, 128)).decode(
        errors="replace"
    )
    return any(line.startswith(f"{tip} commit") for line in output.splitlines())


def _recent_branches(repo: GitRepository) -> list[tuple[str, str]]:
    """The branches that were committed to last, here and of remotes (`x`, `origin/x`), each with
    its last commit."""
    output = repo.run_text(
        "for-each-ref", "--sort=-committerdate", f"--count={MAX_COMPARED_BRANCHES}",
        "--format=%(objectname) %(refname:lstrip=2)", *_BRANCH_REFS,
    )  # fmt: skip
    pairs = (line.partition(" ") for line in output.splitlines())
    return [(name, tip) for tip, _, name in pairs if not name.endswith("/HEAD")]


def _parse_file_names(output: bytes) -> frozenset[str]:
    return frozenset(output.decode(errors="replace").replace("\n", "").split("\0")) - {""}
