"""Parses webhooks of merged pull requests and merge requests: branches, and what they explain."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import TypeAdapter, ValidationError

from reverie.contracts.base import Timestamp
from reverie.contracts.memories.git import (
    MAX_COMMIT_BODY,
    MAX_SUBJECT,
    CommitBody,
    GitChange,
    OptionalSha,
)
from reverie.runtime.http.validation import parse_value
from reverie_services.staleness.webhooks.push_events import (
    IgnoredDelivery,
    RepositoryPayload,
    WebhookPayload,
)


@dataclass(frozen=True)
class MergedRequest:
    """A merged request: its change, and its title and text as the message of the merge.

    The change of a request from another repository says nothing of branches, and is not stored.
    """

    change: GitChange
    message: CommitBody
    is_from_elsewhere: bool = False


class _RepositoryRef(WebhookPayload):
    full_name: str | None = None


class _PullRequestSide(WebhookPayload):
    ref: str
    repo: _RepositoryRef | None = None


class _PullRequestData(WebhookPayload):
    merged: bool = False
    merge_commit_sha: OptionalSha = None
    title: str = ""
    body: str | None = None
    merged_at: str | None = None
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
    title: str = ""
    description: str | None = None
    merged_at: str | None = None
    last_commit: _CommitPayload = _CommitPayload()


class MergeRequestPayload(WebhookPayload):
    """GitLab's event `merge_request`."""

    object_attributes: _MergeRequestAttributes
    project: RepositoryPayload = RepositoryPayload()


def parse_pull_request(
    payload: PullRequestPayload, project: str
) -> MergedRequest | IgnoredDelivery:
    """Parses a merged pull request."""
    pull = payload.pull_request
    if not pull.merged:
        return IgnoredDelivery("the request was not merged")
    is_from_elsewhere = pull.head.repo is None or pull.head.repo != pull.base.repo
    return _build_request(
        project,
        payload.repository,
        target_branch=pull.base.ref,
        source_branch=None if is_from_elsewhere else pull.head.ref,
        commit=pull.merge_commit_sha,
        title=pull.title,
        body=pull.body,
        merged_at=pull.merged_at,
    )


def parse_merge_request(
    payload: MergeRequestPayload, project: str
) -> MergedRequest | IgnoredDelivery:
    """Parses a merged merge request."""
    attributes = payload.object_attributes
    if attributes.action != "merge":
        return IgnoredDelivery("the request was not merged")
    is_from_elsewhere = attributes.source_project_id != attributes.target_project_id
    commit = (
        attributes.merge_commit_sha or attributes.squash_commit_sha or attributes.last_commit.id
    )
    return _build_request(
        project,
        payload.project,
        target_branch=attributes.target_branch,
        source_branch=None if is_from_elsewhere else attributes.source_branch,
        commit=commit,
        title=attributes.title,
        body=attributes.description,
        merged_at=attributes.merged_at,
    )


def _build_request(
    project: str,
    repository: RepositoryPayload,
    *,
    target_branch: str,
    source_branch: str | None,
    commit: str | None,
    title: str,
    body: str | None,
    merged_at: str | None,
) -> MergedRequest | IgnoredDelivery:
    """`source_branch`: None if it is of another repository."""
    if commit is None:
        return IgnoredDelivery("the request names no commit")
    change = parse_value(
        GitChange,
        {
            "project": project,
            "repository": repository.full_name or repository.path_with_namespace,
            "branch": target_branch,
            "default_branch": repository.default_branch,
            "after": commit,
            "merge": True,
            "merged": [source_branch] if source_branch else [],
            "detail": "files",
        },
    )
    message = parse_value(
        CommitBody,
        {
            "sha": commit,
            "subject": title[:MAX_SUBJECT],
            "body": (body or "")[:MAX_COMMIT_BODY],
            "committed_at": _parse_time(merged_at).isoformat(),
        },
    )
    return MergedRequest(change, message, source_branch is None)


def _parse_time(text: str | None) -> datetime:
    """The time of a merge; now if the event does not tell it."""
    try:
        return TypeAdapter(Timestamp).validate_python(text)
    except ValidationError:
        return datetime.now(UTC)
