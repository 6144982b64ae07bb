"""Parses webhooks of merged pull requests and merge requests."""

from __future__ import annotations

from reverie.contracts.git import GitChange, OptionalSha
from reverie.runtime.http.validation import parse_value
from reverie_services.staleness.webhooks.push_events import (
    IgnoredDelivery,
    RepositoryPayload,
    WebhookPayload,
)


class _RepositoryRef(WebhookPayload):
    full_name: str | None = None


class _PullRequestSide(WebhookPayload):
    ref: str
    repo: _RepositoryRef | None = None


class _PullRequestData(WebhookPayload):
    merged: bool = False
    merge_commit_sha: OptionalSha = None
    head: _PullRequestSide
    base: _PullRequestSide


class PullRequestPayload(WebhookPayload):
    """GitHub's event `pull_request`."""

    pull_request: _PullRequestData
    repository: RepositoryPayload = RepositoryPayload()


class _CommitPayload(WebhookPayload):
    id: OptionalSha = None


class _MergeRequestAttributes(WebhookPayload):
    action: str = ""
    source_branch: str
    target_branch: str
    source_project_id: int | None = None
    target_project_id: int | None = None
    merge_commit_sha: OptionalSha = None
    squash_commit_sha: OptionalSha = None
    last_commit: _CommitPayload = _CommitPayload()


class MergeRequestPayload(WebhookPayload):
    """GitLab's event `merge_request`."""

    object_attributes: _MergeRequestAttributes
    project: RepositoryPayload = RepositoryPayload()


def parse_pull_request(payload: PullRequestPayload, project: str) -> GitChange | IgnoredDelivery:
    """Parses the change of a merged pull request."""
    pull = payload.pull_request
    if not pull.merged:
        return IgnoredDelivery("the request was not merged")
    if pull.head.repo is None or pull.head.repo != pull.base.repo:
        return IgnoredDelivery("the request came from another repository")
    return _build_change(
        project, payload.repository, pull.base.ref, pull.merge_commit_sha, pull.head.ref
    )


def parse_merge_request(payload: MergeRequestPayload, project: str) -> GitChange | IgnoredDelivery:
    """Parses the change of a merged merge request."""
    attributes = payload.object_attributes
    if attributes.action != "merge":
        return IgnoredDelivery("the request was not merged")
    if attributes.source_project_id != attributes.target_project_id:
        return IgnoredDelivery("the request came from another repository")
    commit = (
        attributes.merge_commit_sha or attributes.squash_commit_sha or attributes.last_commit.id
    )
    return _build_change(
        project, payload.project, attributes.target_branch, commit, attributes.source_branch
    )


def _build_change(
    project: str, repository: RepositoryPayload, target_branch: str, commit: str | None, branch: str
) -> GitChange | IgnoredDelivery:
    if commit is None:
        return IgnoredDelivery("the request names no commit")
    return parse_value(
        GitChange,
        {
            "project": project,
            "repository": repository.full_name or repository.path_with_namespace,
            "branch": target_branch,
            "default_branch": repository.default_branch,
            "after": commit,
            "merge": True,
            "merged": [branch],
            "detail": "files",
        },
    )
