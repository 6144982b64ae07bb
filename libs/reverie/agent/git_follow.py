"""Following a clone: what was committed since it was last announced, each commit once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from watchfiles import Change, DefaultFilter, awatch

from reverie.agent.git_change import Ends, change_of
from reverie.agent.git_repo import Repo
from reverie.agent.git_state import Ledger, Outcome, Send, Told, announce

LOOK_MS: Final = 5000
"""After so long it is looked at anyway: what happens while a watch begins, or on a file system that
tells nothing, is seen then."""
QUIET_MS: Final = 400
"""How long a clone must be quiet before it is looked at: a rebase makes many commits."""


async def announce_push(repo: Repo, project: str, ends: Ends, send: Send) -> Outcome:
    """Announces what a push changed. Raises what refused it, or git's own failure."""
    async with Ledger(repo).held() as ledger:
        outcome = await _announced(repo, project, ends, ledger, send)
        told = Told(ends.after) if ends.after else None
        if ends.after is None or ends.branch == repo.branch:
            ledger.note(project, ends.branch, told)
    return outcome


async def announce_new(
    repo: Repo,
    project: str,
    send: Send,
    *,
    since: datetime | None = None,
    edits: bool = False,
) -> list[Outcome]:
    """Announces what the branch that is checked out has and was not told yet.

    The first time in a clone that is what was committed `since` a time; nothing without one. With
    `edits` also what is not committed. To be called at the start of a session, with the time of the
    last one. Raises what refused it, or git's own failure.
    """
    async with Ledger(repo).held() as ledger:
        branch, head = repo.branch, repo.head
        if branch is None or head is None:
            return []
        told = ledger.told(project, branch) or _begun(repo, ledger, project, head, since)
        if not repo.has(told.head):
            told = Told(head)
        outcomes = []
        if told.head != head:
            ends = Ends(branch, told.head, head, told=_alive(repo, told.edits))
            outcomes.append(await _announced(repo, project, ends, ledger, send))
            told = Told(head)
        if edits:
            told, more = await _edits(repo, project, branch, told, ledger, send)
            outcomes += more
        ledger.note(project, branch, told)
    return outcomes


def _begun(repo: Repo, ledger: Ledger, project: str, head: str, since: datetime | None) -> Told:
    """Where a branch that was never told begins: at the nearest commit that was told of another,
    else where it stood at a time, else here."""
    forks = {repo.fork(one, head) for one in ledger.heads(project) if repo.has(one)} - {None}
    for fork in forks:
        if fork and all(repo.is_ancestor(other or "", fork) for other in forks):
            return Told(fork)
    return Told((repo.before(since, head) if since else None) or head)


def _alive(repo: Repo, edits: str | None) -> str | None:
    """Edits that were told, unless git has cleared them away."""
    return edits if edits and repo.has(edits) else None


async def _edits(
    repo: Repo, project: str, branch: str, told: Told, ledger: Ledger, send: Send
) -> tuple[Told, list[Outcome]]:
    """Announces what differs in the work tree from what was told of it."""
    now = repo.uncommitted() or told.head
    before = _alive(repo, told.edits) or told.head
    if repo.tree(now) == repo.tree(before):
        return told, []
    ends = Ends(branch, told.head, now, told=before, edits=True)
    outcome = await _announced(repo, project, ends, ledger, send)
    return replace(told, edits=now if now != told.head else None), [outcome]


async def _announced(repo: Repo, project: str, ends: Ends, ledger: Ledger, send: Send) -> Outcome:
    change = await asyncio.to_thread(change_of, repo, project, ends)
    return await announce(ledger, change, send)


async def changes_in(repo: Repo, *, edits: bool) -> AsyncGenerator[None, None]:
    """Yields at once, then every few seconds, and as soon as the clone may have changed: its
    commits, on wish its files."""
    yield
    folders = [repo.folder, *([repo.root] if edits else [])]
    async for _ in awatch(
        *folders,
        watch_filter=_Matters(repo, edits),
        debounce=QUIET_MS,
        rust_timeout=LOOK_MS,
        yield_on_timeout=True,
    ):
        yield


class _Matters(DefaultFilter):
    """Leaves out git's own bookkeeping, and what the default leaves out of a work tree."""

    def __init__(self, repo: Repo, edits: bool) -> None:
        super().__init__()
        self._git, self._edits = repo.folder.resolve(), edits

    def __call__(self, change: Change, path: str) -> bool:
        try:
            inside = Path(path).relative_to(self._git).parts
        except ValueError:
            return self._edits and super().__call__(change, path)
        if path.endswith(".lock"):
            return False
        return bool(inside) and (
            inside[0] in {"HEAD", "packed-refs"} or inside[:2] == ("refs", "heads")
        )
