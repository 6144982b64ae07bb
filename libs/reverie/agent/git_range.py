"""Which commits to announce: a range as a person writes it, or as a CI tells it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reverie.agent.git_change import Ends
from reverie.agent.git_repo import DEEPEN, Repo
from reverie.domain.errors import Conflict, Invalid


@dataclass(frozen=True)
class Pushed:
    """What the surroundings tell of a push; None where they do not."""

    range: str | None = None
    branch: str | None = None
    repository: str | None = None
    default_branch: str | None = None


def pushed(environment: Mapping[str, str]) -> Pushed:
    """The push that a CI runs for: GitHub Actions or GitLab CI; nothing elsewhere."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return _github(environment)
    if environment.get("GITLAB_CI") == "true":
        before, after = environment.get("CI_COMMIT_BEFORE_SHA"), environment.get("CI_COMMIT_SHA")
        return Pushed(
            range=f"{before}..{after}" if before and after else None,
            branch=environment.get("CI_COMMIT_BRANCH"),
            repository=environment.get("CI_PROJECT_PATH"),
            default_branch=environment.get("CI_DEFAULT_BRANCH"),
        )
    return Pushed()


def _github(environment: Mapping[str, str]) -> Pushed:
    told = _payload(environment.get("GITHUB_EVENT_PATH"))
    before, after = told.get("before"), told.get("after")
    repository = told.get("repository")
    return Pushed(
        range=f"{before}..{after}" if before and after else None,
        branch=environment.get("GITHUB_REF_NAME"),
        repository=environment.get("GITHUB_REPOSITORY"),
        default_branch=repository.get("default_branch") if isinstance(repository, dict) else None,
    )


def _payload(path: str | None) -> dict[str, Any]:
    try:
        told = json.loads(Path(path).read_text()) if path else {}
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def ends_of(repo: Repo, told: Pushed) -> Ends:
    """The commits that a push lies between.

    Raises `Invalid` for what is no range, `NotFound` or `Conflict` where the clone lacks a commit.
    """
    branch = told.branch or repo.branch
    if branch is None:
        raise Invalid("branch", "none is checked out: name the one that was pushed")
    old, new = _sides(told.range or "")
    ends = Ends(
        branch.removeprefix("refs/heads/"),
        None,
        None,
        repository=told.repository,
        default_branch=told.default_branch,
    )
    before = None if _none(old) else repo.commit(old)
    if _none(new):
        return replace(ends, before=before)
    after = repo.commit(new)
    if "..." in (told.range or "") and before:
        before = repo.fork(before, after)
    return (
        first_push(repo, ends, after)
        if before is None
        else replace(ends, before=before, after=after)
    )


def first_push(repo: Repo, ends: Ends, after: str) -> Ends:
    """A branch that nobody knows yet: what it has that the default branch has not."""
    if repo.shallow:
        raise Conflict(f"a first push cannot be told from a shallow clone: {DEEPEN}")
    known = ends.default_branch or repo.default_branch
    base = None
    if known and known != ends.branch:
        names = (f"refs/remotes/origin/{known}", f"refs/heads/{known}")
        base = next((repo.fork(name, after) for name in names if repo.has(name)), None)
    return replace(ends, after=after, base=base)


def _sides(text: str) -> tuple[str, str]:
    dots = "..." if "..." in text else ".."
    old, found, new = text.partition(dots)
    if not found or old.startswith("-") or new.startswith("-"):
        raise Invalid("range", f"expected A..B (two commits), not {text!r}")
    return old, new or "HEAD"


def _none(name: str) -> bool:
    """Whether it stands for no commit: nothing, or git's zeros."""
    return not name.strip("0")
