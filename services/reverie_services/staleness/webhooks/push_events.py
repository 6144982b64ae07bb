"""Parses push webhooks of GitHub and GitLab."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from reverie.contracts.base import RepoPath, Timestamp
from reverie.contracts.memories.git import (
    BRANCH_REF_PREFIX,
    MAX_COMMIT_BODY,
    MAX_COMMITS,
    MAX_SUBJECT,
    GitChange,
    OptionalSha,
    Sha,
)
from reverie.domain.staleness.file_changes import parse_merged_branch, parse_reverted_commit
from reverie.runtime.http.validation import parse_value

GITHUB_MAX_COMMITS: Final = 2048
"""The most commits that GitHub names in one push."""
MAX_COMPARED_FILES: Final = 64
"""Added files that a removed one is compared with."""


class WebhookPayload(BaseModel):
    """The fields of a forge's payload that are read."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class PushedCommit(WebhookPayload):
    """A commit of a push."""

    id: Sha
    message: str = ""
    timestamp: Timestamp
    added: list[RepoPath] = Field(default_factory=list)
    modified: list[RepoPath] = Field(default_factory=list)
    removed: list[RepoPath] = Field(default_factory=list)


class RepositoryPayload(WebhookPayload):
    """The repository or project that an event is of."""

    full_name: str | None = None
    path_with_namespace: str | None = None
    default_branch: str | None = None


class PushPayload(WebhookPayload):
    """A push in GitHub's format; GitLab's is converted to it."""

    ref: str
    before: OptionalSha = None
    after: OptionalSha = None
    forced: bool = False
    repository: RepositoryPayload = RepositoryPayload()
    project: RepositoryPayload = RepositoryPayload()
    commits: list[PushedCommit] = Field(default_factory=list, max_length=MAX_COMMITS)
    total_commits_count: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether no commit was left out."""
        if self.total_commits_count is not None:
            return self.total_commits_count <= len(self.commits)
        return len(self.commits) < GITHUB_MAX_COMMITS


@dataclass(frozen=True)
class IgnoredDelivery:
    """A push that changes no branch."""

    reason: str


def parse_push(push: PushPayload, project: str) -> GitChange | IgnoredDelivery:
    """The change of a push. Raises `InvalidInput` naming what no change may hold."""
    if not push.ref.startswith(BRANCH_REF_PREFIX):
        return IgnoredDelivery("it is no push to a branch")
    # Whoever pushes writes the subjects: the event of a merged request proves a merge.
    has_merge = any(parse_merged_branch(_get_subject(commit)) for commit in push.commits)
    repository = push.repository if push.repository.full_name else push.project
    return parse_value(
        GitChange,
        {
            "project": project,
            "repository": repository.full_name or repository.path_with_namespace,
            "branch": push.ref,
            "default_branch": repository.default_branch,
            "before": push.before,
            "after": push.after,
            "deleted": push.after is None,
            "forced": push.forced,
            "merge": has_merge,
            "detail": "files",
            "partial": not push.is_complete,
            "commits": [_build_commit(commit) for commit in push.commits],
            "files": [file for commit in push.commits for file in _iterate_files(commit)],
        },
    )


def _get_subject(commit: PushedCommit) -> str:
    return commit.message.partition("\n")[0][:MAX_SUBJECT]


def _build_commit(commit: PushedCommit) -> Mapping[str, Any]:
    return {
        "sha": commit.id,
        "subject": _get_subject(commit),
        "body": commit.message.partition("\n")[2].strip()[:MAX_COMMIT_BODY],
        "committed_at": commit.timestamp.isoformat(),
        "reverts": parse_reverted_commit(commit.message),
    }


def _iterate_files(commit: PushedCommit) -> Iterator[dict[str, Any]]:
    """Yields the files of one commit; removed ones last, with their likely new location."""
    for status, paths in (("added", commit.added), ("modified", commit.modified)):
        for path in paths:
            yield {"path": path, "status": status, "commit": commit.id}
    candidates = RenameCandidates(commit.added)
    for path in commit.removed:
        likely_path = candidates.find_likely(path)
        yield {"path": path, "status": "deleted", "commit": commit.id, "possible_path": likely_path}


class RenameCandidates:
    """The added files of a commit, by what a removed one that lives on in them shares with them."""

    def __init__(self, added: Sequence[str]) -> None:
        self._paths_by_trait: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for added_path in added:
            path = PurePosixPath(added_path)
            for trait in _similarity_traits(path):
                self._paths_by_trait[trait].append(added_path)
                self._paths_by_trait[(*trait, path.parent.name)].append(added_path)

    def find_likely(self, path: str) -> str | None:
        """Finds the added file that a removed file most likely became, by name, then by folder.

        None if nothing was added. If very many files have the same name, only those whose folder
        has the same name are compared.
        """
        removed = PurePosixPath(path)
        folders = set(removed.parent.parts)

        def shared(other: str) -> int:
            return len(folders.intersection(PurePosixPath(other).parent.parts))

        for trait in _similarity_traits(removed):
            matches = self._paths_by_trait.get(trait)
            if matches and len(matches) > MAX_COMPARED_FILES:
                matches = self._paths_by_trait.get((*trait, removed.parent.name), matches)[
                    :MAX_COMPARED_FILES
                ]
            if matches:
                return max(matches, key=shared)
        return None


def _similarity_traits(path: PurePosixPath) -> tuple[tuple[str, ...], ...]:
    """Returns the traits of a path, most specific first: name, name without suffix, suffix, any."""
    return ("name", path.name), ("stem", path.stem), ("suffix", path.suffix), ("any",)
