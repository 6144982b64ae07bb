"""Builds small git repositories for tests with the git binary."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reverie.agent.git.repository import GitRepository

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class Clone:
    """A work tree with one branch, `main`; each commit is an hour after the one before."""

    root: Path
    at: datetime = field(default=NOON)

    @property
    def repo(self) -> GitRepository:
        return GitRepository(self.root)

    def git(self, *args: str, **env: str) -> str:
        """What git prints; fails where git does."""
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *args],
            cwd=self.root,
            env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, **env},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()

    def write(self, files: Mapping[str, str | None]) -> None:
        """Writes files; None deletes one."""
        for name, text in files.items():
            path = self.root / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, subject: str, files: Mapping[str, str | None] | None = None) -> str:
        """Commits the files as they are then; answers the commit."""
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject, **self._dates())
        return self.git("rev-parse", "HEAD")

    def merge(self, branch: str, *more: str) -> str:
        """Merges a branch, never by moving ahead; answers the merge."""
        self.git("merge", "-q", "--no-ff", *more, branch, **self._dates())
        return self.git("rev-parse", "HEAD")

    def _dates(self) -> dict[str, str]:
        self.at += timedelta(hours=1)
        when = self.at.isoformat()
        return {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}


def new_clone(folder: Path) -> Clone:
    """An empty repository in a folder that is made for it."""
    folder.mkdir(parents=True)
    clone = Clone(folder)
    clone.git("init", "-q", "-b", "main")
    return clone


def numbered(count: int, **changed: str) -> str:
    """Lines `line 1` and so on; those named (`_3="x"`) are other ones."""
    return "".join(f"{changed.get(f'_{n}', f'line {n}')}\n" for n in range(1, count + 1))
