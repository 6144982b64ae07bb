"""Builds the announced git change from a range of commits.

Commits are reported along first parents, each against its predecessor. A merge is one step whose
files name the commit that touched them. A longer range is reported as one diff of its ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from reverie.agent.git.diff import DiffEntry, parse_diff
from reverie.agent.git.file_change_builder import build_file_changes
from reverie.agent.git.merged_branches import LoggedCommit, find_merged_branches
from reverie.agent.git.repository import UNSHALLOW_HINT, GitRepository
from reverie.contracts.memories.git import (
    MAX_COMMIT_BODY,
    MAX_COMMITS,
    MAX_FILES,
    MAX_SUBJECT,
    GitChange,
)
from reverie.domain.core.errors import Conflict
from reverie.domain.staleness.file_changes import parse_reverted_commit

SEND_SOURCE_SETTING: Final = "reverie.source"
"""The setting of a clone that lets changed lines leave it: `git config reverie.source true`."""
MAX_STEPS: Final = 200
MAX_CHANGE_BYTES: Final = 16 * 1024 * 1024
_LOG_FORMAT: Final = "%H%x00%P%x00%cI%x00%s%x00%b%x01"

JsonDocument = dict[str, Any]


@dataclass(frozen=True)
class CommitRange:
    """The commits to compare.

    `before`: None for a new branch, which is compared with `base` (or the empty tree). `after`:
    None for a deleted branch. `announced_edits`: the uncommitted state last announced.
    `is_uncommitted`: `after` is such a state. `merged_branches`: branches known to be merged, even
    if the clone does not show it. `repository` and `default_branch` are set if they are known
    better than from the clone.
    """

    branch: str
    before: str | None
    after: str | None
    base: str | None = None
    announced_edits: str | None = None
    is_uncommitted: bool = False
    merged_branches: tuple[str, ...] = ()
    repository: str | None = None
    default_branch: str | None = None

    @property
    def start(self) -> str | None:
        """The commit after which commits are reported."""
        return self.before or self.base


@dataclass
class _DiffStep:
    commit: LoggedCommit
    entries: list[DiffEntry]
    commit_by_path: Mapping[str, str] = field(default_factory=dict)


def build_git_change(repo: GitRepository, project: str, commit_range: CommitRange) -> GitChange:
    """Builds the change between two commits of a branch.

    Raises `Conflict` if the clone lacks one of them.
    """
    default_branch = commit_range.default_branch or repo.default_branch
    header = {
        "project": project,
        "repository": commit_range.repository or repo.remote_name,
        "branch": commit_range.branch,
        "default_branch": default_branch,
        "before": commit_range.announced_edits
        if commit_range.is_uncommitted
        else commit_range.before,
        "after": commit_range.after,
        "uncommitted": commit_range.is_uncommitted,
    }
    if commit_range.after is None:
        return GitChange.model_validate({**header, "deleted": True})
    forced = _is_forced(repo, commit_range, commit_range.after)
    commits = (
        []
        if commit_range.is_uncommitted
        else _list_commits(repo, commit_range.start, commit_range.after)
    )
    steps = list(_diff_steps(repo, commit_range, commits, forced))
    files = [item for step in steps for item in _encode_files(repo, step)][:MAX_FILES]
    if repo.config_value(SEND_SOURCE_SETTING) != "true":
        _drop_fields({"files": files}, ("text",))
    named_shas = {file["commit"] for file in files}
    merges = [item for item in commits if len(item.parents) > 1]
    return _fit_to_size(
        {
            **header,
            "forced": forced,
            "merge": bool(merges),
            "merged": list(
                dict.fromkeys(
                    (
                        *commit_range.merged_branches,
                        *find_merged_branches(repo, commits, commit_range.branch, default_branch),
                    )
                )
            ),
            "commits": _encode_commits(
                _add_named_commits(repo, commits, named_shas),
                _first_parent_chain(commits, commit_range.after),
            ),
            "files": files,
        }
    )


def _is_forced(repo: GitRepository, commit_range: CommitRange, after: str) -> bool:
    """Returns whether the branch was force-pushed.

    Raises `Conflict` if a shallow clone cannot decide it.
    """
    if (
        commit_range.before is None
        or commit_range.is_uncommitted
        or repo.is_ancestor(commit_range.before, after)
    ):
        return False
    if repo.is_shallow and repo.merge_base(commit_range.before, after) is None:
        raise Conflict(f"this clone is too shallow to know what lies between: {UNSHALLOW_HINT}")
    return True


def _list_commits(repo: GitRepository, start: str | None, end: str) -> list[LoggedCommit]:
    """The commits that `end` has and `start` has not, oldest first; the newest of too many."""
    revision_range = f"{start}..{end}" if start else end
    output = repo.run(
        "log",
        f"--max-count={MAX_COMMITS}",
        "--topo-order",
        f"--format={_LOG_FORMAT}",
        revision_range,
        "--",
    ).decode(errors="replace")
    commits = [
        _parse_commit(record.lstrip("\n").split("\0"))
        for record in output.split("\1")
        if record.strip()
    ]
    return commits[::-1]


def _parse_commit(fields: list[str]) -> LoggedCommit:
    sha, parents, committed_at, subject, body = fields[:5]
    return LoggedCommit(
        sha,
        tuple(parents.split()),
        committed_at,
        subject[:MAX_SUBJECT],
        parse_reverted_commit(body),
        body.strip()[:MAX_COMMIT_BODY],
    )


def _diff_steps(
    repo: GitRepository, commit_range: CommitRange, commits: Sequence[LoggedCommit], forced: bool
) -> Iterator[_DiffStep]:
    """The comparisons that lead from the start to the end."""
    assert commit_range.after is not None
    first_parents = _first_parent_chain(commits, commit_range.after)
    start = commit_range.announced_edits or commit_range.start or repo.empty_tree
    single_step = (
        forced
        or commit_range.announced_edits
        or commit_range.is_uncommitted
        or len(first_parents) > MAX_STEPS
    )
    first_parent = next(iter(first_parents[0].parents), None) if first_parents else None
    if single_step or (first_parents and first_parent != commit_range.start):
        last_commit = (
            commits[-1]
            if commits and commits[-1].sha == commit_range.after
            else _read_commit(repo, commit_range.after)
        )
        commit_by_path = (
            _last_commits_by_path(repo, commit_range.start, commit_range.after) if commits else {}
        )
        yield _DiffStep(
            last_commit, parse_diff(repo.diff(start, commit_range.after)), commit_by_path
        )
        return
    for commit in first_parents:
        parent = commit.parents[0] if commit.parents else repo.empty_tree
        commit_by_path = (
            _last_commits_by_path(repo, parent, commit.sha) if len(commit.parents) > 1 else {}
        )
        yield _DiffStep(commit, parse_diff(repo.diff(parent, commit.sha)), commit_by_path)


def _first_parent_chain(commits: Sequence[LoggedCommit], end: str) -> list[LoggedCommit]:
    """The commits that lead to `end` along first parents, oldest first."""
    by_sha = {commit.sha: commit for commit in commits}
    chain = []
    commit = by_sha.get(end)
    while commit:
        chain.append(commit)
        commit = by_sha.get(commit.parents[0]) if commit.parents else None
    return chain[::-1]


def _last_commits_by_path(repo: GitRepository, start: str | None, end: str) -> dict[str, str]:
    """Maps each path to the last commit between the two that touched it, merges excluded."""
    revision_range = f"{start}..{end}" if start else end
    output = repo.run(
        "log",
        "-z",
        "--no-merges",
        "--no-renames",
        "--name-only",
        "--format=%x01%H",
        revision_range,
        "--",
    ).decode(errors="replace")
    commit_by_path: dict[str, str] = {}
    for block in output.split("\1")[1:]:
        sha, *paths = block.split("\0")
        for path in paths:
            commit_by_path.setdefault(path.lstrip("\n"), sha)
    return commit_by_path


def _read_commit(repo: GitRepository, sha: str) -> LoggedCommit:
    output = repo.run("log", "-1", f"--format={_LOG_FORMAT}", sha, "--").decode(errors="replace")
    return _parse_commit(output.rstrip("\n").removesuffix("\1").split("\0"))


def _add_named_commits(
    repo: GitRepository, commits: Sequence[LoggedCommit], named_shas: set[str]
) -> list[LoggedCommit]:
    """Adds the commits that files name even if no commit is new (a branch was set back)."""
    listed_shas = {commit.sha for commit in commits}
    return [*(_read_commit(repo, sha) for sha in sorted(named_shas - listed_shas)), *commits]


def _encode_commits(
    commits: Sequence[LoggedCommit], chain: Sequence[LoggedCommit]
) -> list[JsonDocument]:
    """Encodes the commits as JSON; those from a merge carry the time of the merge."""
    by_sha = {commit.sha: commit for commit in commits}
    merged_at: dict[str, str] = {}
    for merge in chain:
        pending = list(merge.parents[1:])
        while pending:
            ancestor = by_sha.get(pending.pop())
            if ancestor and ancestor.sha not in merged_at and ancestor not in chain:
                merged_at[ancestor.sha] = merge.committed_at
                pending += ancestor.parents
    return [_encode_commit(commit, merged_at.get(commit.sha)) for commit in commits]


def _encode_commit(commit: LoggedCommit, merged_at: str | None) -> JsonDocument:
    document: JsonDocument = {
        "sha": commit.sha,
        "committed_at": datetime.fromisoformat(commit.committed_at),
    }
    optional = {
        "subject": commit.subject,
        "body": commit.body,
        "parents": list(commit.parents),
        "reverts": commit.reverts,
    }
    if merged_at:
        document["merged_at"] = datetime.fromisoformat(merged_at)
    return document | {name: value for name, value in optional.items() if value}


def _encode_files(repo: GitRepository, step: _DiffStep) -> list[JsonDocument]:
    """The file changes of a step, each with the commit that touched the file."""

    def last_commit_of(paths: Sequence[str]) -> str:
        return next(
            (step.commit_by_path[path] for path in paths if path in step.commit_by_path),
            step.commit.sha,
        )

    return build_file_changes(repo, step.entries, last_commit_of)


def _fit_to_size(document: JsonDocument) -> GitChange:
    """Drops detail until the change fits: first text, then identifiers and hunk headers, then
    hunks.

    Raises `Conflict` if the paths alone are too large.
    """
    for dropped in ((), ("text",), ("identifiers", "header"), ("hunks", "symbols", "moved")):
        _drop_fields(document, dropped)
        change = GitChange.model_validate(document)
        if len(change.model_dump_json(exclude_defaults=True)) <= MAX_CHANGE_BYTES:
            return change
    raise Conflict(f"the range is too large to announce at once: split it ({UNSHALLOW_HINT})")


def _drop_fields(document: JsonDocument, names: Sequence[str]) -> None:
    for file in document["files"]:
        if "hunks" in names and file.get("hunks"):
            file["truncated"] = True
        for part in (file, *file.get("hunks", ())):
            for name in names:
                part.pop(name, None)
