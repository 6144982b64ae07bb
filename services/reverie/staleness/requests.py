"""Merge requests that a forge tells of: a squash names no branch, the request it ended does."""

from __future__ import annotations

from pydantic import Field

from reverie.contracts.git import GitChange, SomeSha
from reverie.runtime.body import parse_value
from reverie.staleness.pushes import Told, Unheard


class _Of(Told):
    full_name: str | None = None


class _Side(Told):
    ref: str
    repo: _Of | None = None


class _Pull(Told):
    merged: bool = False
    merge_commit_sha: SomeSha = None
    head: _Side
    base: _Side


class _Home(Told):
    full_name: str | None = None
    path_with_namespace: str | None = None
    default_branch: str | None = None


class PullRequest(Told):
    """GitHub's event `pull_request`."""

    pull_request: _Pull
    repository: _Home = _Home()


class _Commit(Told):
    id: SomeSha = None


class _Attributes(Told):
    action: str = ""
    source_branch: str
    target_branch: str
    source_project_id: int | None = None
    target_project_id: int | None = None
    merge_commit_sha: SomeSha = None
    squash_commit_sha: SomeSha = None
    last_commit: _Commit = _Commit()


class MergeRequest(Told):
    """GitLab's event `merge_request`."""

    object_attributes: _Attributes
    project: _Home = Field(default_factory=_Home)


def pull_in(told: PullRequest, project: str) -> GitChange | Unheard:
    """What a merged pull request brought in."""
    pull = told.pull_request
    if not pull.merged:
        return Unheard("the request was not merged")
    if pull.head.repo is None or pull.head.repo != pull.base.repo:
        return Unheard("the request came from another repository")
    return _merge(project, told.repository, pull.base.ref, pull.merge_commit_sha, pull.head.ref)


def request_in(told: MergeRequest, project: str) -> GitChange | Unheard:
    """What a merged merge request brought in."""
    of = told.object_attributes
    if of.action != "merge":
        return Unheard("the request was not merged")
    if of.source_project_id != of.target_project_id:
        return Unheard("the request came from another repository")
    commit = of.merge_commit_sha or of.squash_commit_sha or of.last_commit.id
    return _merge(project, told.project, of.target_branch, commit, of.source_branch)


def _merge(
    project: str, home: _Home, into: str, commit: str | None, branch: str
) -> GitChange | Unheard:
    if commit is None:
        return Unheard("the request names no commit")
    return parse_value(
        GitChange,
        {
            "project": project,
            "repository": home.full_name or home.path_with_namespace,
            "branch": into,
            "default_branch": home.default_branch,
            "after": commit,
            "merge": True,
            "merged": [branch],
            "detail": "files",
        },
    )
