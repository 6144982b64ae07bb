"""Announces new commits of a clone to the gateway, each once, and watches the clone for more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from watchfiles import Change, DefaultFilter, awatch

from reverie.agent.git.announcement_log import (
    AnnouncedHead,
    AnnouncementLog,
    AnnouncementOutcome,
    SendChange,
    announce,
)
from reverie.agent.git.change_builder import CommitRange, build_git_change
from reverie.agent.git.repository import GitRepository

POLL_INTERVAL_MS: Final = 5000
"""Longest time between two checks of a clone.

It finds changes made while a watch starts, or on a file system that reports none.
"""
DEBOUNCE_MS: Final = 400
"""Time that a clone must be quiet before it is checked: a rebase makes many commits."""


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


async def watch_clone(repo: GitRepository, *, include_edits: bool) -> AsyncGenerator[None, None]:
    """Yields at once, then every few seconds, and when the clone may have changed.

    Watches commits, and optionally files.
    """
    yield
    folders = [repo.git_folder, *([repo.root] if include_edits else [])]
    async for _ in awatch(
        *folders,
        watch_filter=_CloneChangeFilter(repo, include_edits),
        debounce=DEBOUNCE_MS,
        rust_timeout=POLL_INTERVAL_MS,
        yield_on_timeout=True,
    ):
        yield


class _CloneChangeFilter(DefaultFilter):
    """Leaves out git's own bookkeeping, and what the default leaves out of a work tree."""

    def __init__(self, repo: GitRepository, include_edits: bool) -> None:
        super().__init__()
        self._git_folder, self._include_edits = repo.git_folder.resolve(), include_edits

    def __call__(self, change: Change, path: str) -> bool:
        try:
            parts = Path(path).relative_to(self._git_folder).parts
        except ValueError:
            return self._include_edits and super().__call__(change, path)
        if path.endswith(".lock"):
            return False
        return bool(parts) and (
            parts[0] in {"HEAD", "packed-refs"} or parts[:2] == ("refs", "heads")
        )
