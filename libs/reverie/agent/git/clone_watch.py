"""Watches one clone for new commits, and for edits, by what the file system reports."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from watchfiles import Change, DefaultFilter, awatch

from reverie.agent.git.repository import GitRepository

POLL_INTERVAL_MS: Final = 5000
"""Longest time between two checks of a clone.

It finds changes made while a watch starts, or on a file system that reports none.
"""
DEBOUNCE_MS: Final = 400
"""Time that a clone must be quiet before it is checked: a rebase makes many commits."""


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
