"""Announces new commits of a clone to the gateway, each once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime

from reverie.agent.git.announcement_log import (
    AnnouncedHead,
    AnnouncementLog,
    AnnouncementOutcome,
    SendChange,
    announce,
)
from reverie.agent.git.change_builder import CommitRange, build_git_change
from reverie.agent.git.repository import GitRepository


async def announce_push(
    repo: GitRepository, project: str, commit_range: CommitRange, send: SendChange
) -> AnnouncementOutcome:
    """Announces what a push changed. Raises what refused it, or git's own failure."""
    async with AnnouncementLog(repo).locked() as log:
        outcome = await _build_and_announce(repo, project, commit_range, log, send)
        announced = AnnouncedHead(commit_range.after) if commit_range.after else None
        if commit_range.after is None or commit_range.branch == repo.current_branch:
            log.record(project, commit_range.branch, announced)
    return outcome


async def announce_new_commits(
    repo: GitRepository,
    project: str,
    send: SendChange,
    *,
    since: datetime | None = None,
    include_edits: bool = False,
) -> list[AnnouncementOutcome]:
    """Announces the commits of the checked-out branch that were not announced yet.

    The first time in a clone, these are the commits `since` a time; none without a time. With
    `include_edits`, uncommitted edits are announced too. Call it at the start of a session, with
    the time of the last session. Raises the gateway's rejection, or the failure of git.
    """
    async with AnnouncementLog(repo).locked() as log:
        branch, head = repo.current_branch, repo.head_commit
        if branch is None or head is None:
            return []
        announced = log.last_announced(project, branch) or _initial_head(
            repo, log, project, head, since
        )
        if not repo.has_commit(announced.head):
            announced = AnnouncedHead(head)
        outcomes = []
        if announced.head != head:
            commit_range = CommitRange(
                branch, announced.head, head, announced_edits=_existing_edits(repo, announced.edits)
            )
            outcomes.append(await _build_and_announce(repo, project, commit_range, log, send))
            announced = AnnouncedHead(head)
        if include_edits:
            announced, edit_outcomes = await _announce_edits(
                repo, project, branch, announced, log, send
            )
            outcomes += edit_outcomes
        log.record(project, branch, announced)
    return outcomes


def _initial_head(
    repo: GitRepository, log: AnnouncementLog, project: str, head: str, since: datetime | None
) -> AnnouncedHead:
    """Returns the start of a branch that was never announced.

    This is the nearest announced commit of another branch, else its commit at a time, else its
    head.
    """
    forks = {
        repo.merge_base(commit, head)
        for commit in log.announced_heads(project)
        if repo.has_commit(commit)
    } - {None}
    for fork in forks:
        if fork and all(repo.is_ancestor(other_fork or "", fork) for other_fork in forks):
            return AnnouncedHead(fork)
    return AnnouncedHead((repo.last_commit_before(since, head) if since else None) or head)


def _existing_edits(repo: GitRepository, edits: str | None) -> str | None:
    """Returns the uncommitted edits that were announced, unless git has deleted them."""
    return edits if edits and repo.has_commit(edits) else None


async def _announce_edits(
    repo: GitRepository,
    project: str,
    branch: str,
    announced: AnnouncedHead,
    log: AnnouncementLog,
    send: SendChange,
) -> tuple[AnnouncedHead, list[AnnouncementOutcome]]:
    """Announces how the work tree differs from its last announced state."""
    current = repo.snapshot_uncommitted() or announced.head
    previous = _existing_edits(repo, announced.edits) or announced.head
    if repo.tree_id(current) == repo.tree_id(previous):
        return announced, []
    commit_range = CommitRange(
        branch, announced.head, current, announced_edits=previous, is_uncommitted=True
    )
    outcome = await _build_and_announce(repo, project, commit_range, log, send)
    return replace(announced, edits=current if current != announced.head else None), [outcome]


async def _build_and_announce(
    repo: GitRepository,
    project: str,
    commit_range: CommitRange,
    log: AnnouncementLog,
    send: SendChange,
) -> AnnouncementOutcome:
    change = await asyncio.to_thread(build_git_change, repo, project, commit_range)
    return await announce(log, change, send)
