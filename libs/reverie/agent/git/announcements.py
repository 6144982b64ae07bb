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
"""After so long it is looked at anyway: what happens while a watch begins, or on a file system that
tells nothing, is seen then."""
DEBOUNCE_MS: Final = 400
"""How long a clone must be quiet before it is looked at: a rebase makes many commits."""


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
    """Announces what the branch that is checked out has and was not told yet.

    The first time in a clone that is what was committed `since` a time; nothing without one. With
    `include_edits` also what is not committed. To be called at the start of a session, with the
    time of the last one. Raises what refused it, or git's own failure.
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
    """Where a branch that was never told begins: at the nearest commit that was told of another,
    else where it stood at a time, else here."""
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
    """Edits that were told, unless git has cleared them away."""
    return edits if edits and repo.has_commit(edits) else None


async def _announce_edits(
    repo: GitRepository,
    project: str,
    branch: str,
    announced: AnnouncedHead,
    log: AnnouncementLog,
    send: SendChange,
) -> tuple[AnnouncedHead, list[AnnouncementOutcome]]:
    """Announces what differs in the work tree from what was told of it."""
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
    """Yields at once, then every few seconds, and as soon as the clone may have changed: its
    commits, on wish its files."""
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
