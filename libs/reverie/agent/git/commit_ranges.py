"""Resolves which commits to announce: from a range argument or from the CI environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from reverie.agent.clone_paths import read_json_object
from reverie.agent.git.change_builder import CommitRange
from reverie.agent.git.repository import UNSHALLOW_HINT, GitRepository
from reverie.domain.core.errors import Conflict, InvalidInput


@dataclass(frozen=True)
class PushInfo:
    """Facts about a push from its environment; None for those that are unknown."""

    range: str | None = None
    branch: str | None = None
    repository: str | None = None
    default_branch: str | None = None


def detect_push(environment: Mapping[str, str]) -> PushInfo:
    """The push that a CI runs for: GitHub Actions or GitLab CI; nothing elsewhere."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return _github_push(environment)
    if environment.get("GITLAB_CI") == "true":
        before, after = environment.get("CI_COMMIT_BEFORE_SHA"), environment.get("CI_COMMIT_SHA")
        return PushInfo(
            range=f"{before}..{after}" if before and after else None,
            branch=environment.get("CI_COMMIT_BRANCH"),
            repository=environment.get("CI_PROJECT_PATH"),
            default_branch=environment.get("CI_DEFAULT_BRANCH"),
        )
    return PushInfo()


def _github_push(environment: Mapping[str, str]) -> PushInfo:
    payload = read_json_object(Path(environment.get("GITHUB_EVENT_PATH", "")))
    before, after = payload.get("before"), payload.get("after")
    repository = payload.get("repository")
    return PushInfo(
        range=f"{before}..{after}" if before and after else None,
        branch=environment.get("GITHUB_REF_NAME"),
        repository=environment.get("GITHUB_REPOSITORY"),
        default_branch=repository.get("default_branch") if isinstance(repository, dict) else None,
    )


def resolve_range(repo: GitRepository, push: PushInfo) -> CommitRange:
    """Resolves the two commits of a push.

    Raises `InvalidInput` if the text is no range, `NotFound` or `Conflict` if the clone lacks a
    commit.
    """
    branch = push.branch or repo.current_branch
    if branch is None:
        raise InvalidInput("branch", "none is checked out: name the one that was pushed")
    old, new = _split_range(push.range or "")
    commit_range = CommitRange(
        branch.removeprefix("refs/heads/"),
        None,
        None,
        repository=push.repository,
        default_branch=push.default_branch,
    )
    before = None if _is_no_commit(old) else repo.resolve_commit(old)
    if _is_no_commit(new):
        return replace(commit_range, before=before)
    after = repo.resolve_commit(new)
    if "..." in (push.range or "") and before:
        before = repo.merge_base(before, after)
    return (
        resolve_first_push(repo, commit_range, after)
        if before is None
        else replace(commit_range, before=before, after=after)
    )


def resolve_first_push(repo: GitRepository, commit_range: CommitRange, after: str) -> CommitRange:
    """A branch that nobody knows yet: what it has that the default branch has not."""
    if repo.is_shallow:
        raise Conflict(f"a first push cannot be told from a shallow clone: {UNSHALLOW_HINT}")
    default_branch = commit_range.default_branch or repo.default_branch
    base = None
    if default_branch and default_branch != commit_range.branch:
        refs = (f"refs/remotes/origin/{default_branch}", f"refs/heads/{default_branch}")
        base = next((repo.merge_base(ref, after) for ref in refs if repo.has_commit(ref)), None)
    return replace(commit_range, after=after, base=base)


def _split_range(text: str) -> tuple[str, str]:
    dots = "..." if "..." in text else ".."
    old, separator, new = text.partition(dots)
    if not separator or old.startswith("-") or new.startswith("-"):
        raise InvalidInput("range", f"expected A..B (two commits), not {text!r}")
    return old, new or "HEAD"


def _is_no_commit(name: str) -> bool:
    """Returns whether the text means no commit: empty, or git's zeros."""
    return not name.strip("0")
