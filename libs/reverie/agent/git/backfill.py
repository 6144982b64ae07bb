"""Sends the history of a branch: batches of commits with their files, oldest first.

`.git/reverie/backfill.json` holds the last batch that was accepted. It is sent again first: if the
gateway knows it, the history goes on after it, else from its beginning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from reverie.agent.clone_paths import read_json_object, replace_atomically, resolve_inside
from reverie.agent.git.announcement_log import SendChange
from reverie.agent.git.file_change_builder import is_valid_path
from reverie.agent.git.repository import GitRepository
from reverie.contracts.memories.git import (
    MAX_COMMIT_BODY,
    MAX_SUBJECT,
    CommitBody,
    FileChange,
    GitChange,
)
from reverie.domain.staleness.file_changes import parse_reverted_commit

BATCH_COMMITS: Final = 100
BATCH_FILES: Final = 5_000
MAX_FILES_PER_COMMIT: Final = 1_000
_LOG_FORMAT: Final = "%x01%H%x00%P%x00%cI%x00%s%x00%b%x02"
_STATUSES: Final = {"A": "added", "D": "deleted"}


@dataclass(frozen=True)
class HistoryRange:
    """The part of a branch's history to send: `head` and its ancestors.

    `since`: only commits from then on. `limit`: only the newest so many.
    """

    project: str
    branch: str
    head: str
    since: datetime | None = None
    limit: int | None = None

    @property
    def key(self) -> str:
        """Names the range in the state; each range has a state of its own."""
        since = self.since.isoformat() if self.since else ""
        return f"{self.project} {self.branch} {since} {self.limit or ''}"


@dataclass(frozen=True)
class HistoryCommit:
    """A commit with the files that it changed; those of a merge are its branch's."""

    commit: CommitBody
    files: tuple[FileChange, ...]


@dataclass(frozen=True)
class SentBatch:
    """The last accepted batch: the commits that `after` contains and `before` does not."""

    before: str | None
    after: str


class BackfillState:
    """The last accepted batch of each range, in a clone."""

    def __init__(self, repo: GitRepository) -> None:
        self._git_folder = repo.git_folder
        self._file: Path = self._git_folder / "reverie" / "backfill.json"

    def load(self, key: str) -> SentBatch | None:
        """Returns the last accepted batch of a range."""
        entry = self._read().get(key)
        return SentBatch(**entry) if entry else None

    def save(self, key: str, batch: SentBatch) -> None:
        """Saves the last accepted batch atomically."""
        state = self._read() | {key: asdict(batch)}
        replace_atomically(self._file, json.dumps(state).encode())

    def _read(self) -> dict[str, Any]:
        resolve_inside(self._git_folder, self._file)
        return read_json_object(self._file)


def read_history(
    repo: GitRepository, history: HistoryRange, after: str | None = None
) -> list[HistoryCommit]:
    """Reads the commits of a range, oldest first; only those that `after` does not contain."""
    options = [f"--since={history.since.isoformat()}"] if history.since else []
    options += [f"--max-count={history.limit}"] if history.limit else []
    revisions = [history.head, *([f"^{after}"] if after else [])]
    output = repo.run(
        *("log", "-z", "--topo-order", "--name-status", "--no-renames", f"--format={_LOG_FORMAT}"),
        *options,
        *revisions,
        "--",
    ).decode(errors="replace")
    records = output.split("\x01")[1:]
    return [_parse_record(record) for record in reversed(records)]


def _parse_record(record: str) -> HistoryCommit:
    header, _, listed = record.partition("\x02")
    sha, parents, committed_at, subject, body = header.split("\0")[:5]
    commit = CommitBody(
        sha=sha,
        subject=subject[:MAX_SUBJECT],
        body=body.strip()[:MAX_COMMIT_BODY],
        committed_at=datetime.fromisoformat(committed_at),
        parents=parents.split(),
        reverts=parse_reverted_commit(body),
    )
    names = [name.lstrip("\n") for name in listed.split("\0") if name.strip("\n")]
    pairs = zip(names[::2], names[1::2], strict=False)
    files = (
        FileChange.model_validate(
            {"path": path, "status": _STATUSES.get(status, "modified"), "commit": sha}
        )
        for status, path in pairs
        if is_valid_path(path)
    )
    return HistoryCommit(commit, tuple(files)[:MAX_FILES_PER_COMMIT])


async def backfill_history(
    repo: GitRepository,
    history: HistoryRange,
    send: SendChange,
    report: Callable[[int, int], None],
) -> int:
    """Sends a history; returns the number of commits that were sent now.

    `report` receives how many commits were sent, and of how many. Raises what refused a batch; the
    next call goes on after the last accepted one.
    """
    state = BackfillState(repo)
    last = await _find_last_accepted(repo, history, state, send)
    commits = read_history(repo, history, last.after if last else None)
    report(0, len(commits))
    before, sent = last.after if last else None, 0
    for batch in _split_batches(commits):
        change = _build_batch(repo, history, batch, before)
        await send(change.model_dump(mode="json", exclude_defaults=True))
        accepted = SentBatch(before, batch[-1].commit.sha)
        state.save(history.key, accepted)
        before, sent = accepted.after, sent + len(batch)
        report(sent, len(commits))
    return sent


async def _find_last_accepted(
    repo: GitRepository, history: HistoryRange, state: BackfillState, send: SendChange
) -> SentBatch | None:
    """Sends the last accepted batch again; None if there is none, or this gateway lacks it."""
    last = state.load(history.key)
    if last is None or not all(map(repo.has_commit, filter(None, (last.after, last.before)))):
        return None
    if not repo.is_ancestor(last.after, history.head):
        return None
    tip = HistoryRange(history.project, history.branch, last.after, history.since, BATCH_COMMITS)
    commits = read_history(repo, tip, last.before)
    if not commits:
        return None
    change = _build_batch(repo, history, commits, last.before)
    receipt = await send(change.model_dump(mode="json", exclude_defaults=True))
    return last if receipt.is_duplicate else None


def _split_batches(commits: Sequence[HistoryCommit]) -> Iterator[list[HistoryCommit]]:
    batch: list[HistoryCommit] = []
    file_count = 0
    for commit in commits:
        is_full = len(batch) >= BATCH_COMMITS or file_count + len(commit.files) > BATCH_FILES
        if batch and is_full:
            yield batch
            batch, file_count = [], 0
        batch.append(commit)
        file_count += len(commit.files)
    if batch:
        yield batch


def _build_batch(
    repo: GitRepository,
    history: HistoryRange,
    commits: Sequence[HistoryCommit],
    before: str | None,
) -> GitChange:
    return GitChange(
        project=history.project,
        repository=repo.remote_name,
        branch=history.branch,
        default_branch=repo.default_branch,
        before=before,
        after=commits[-1].commit.sha,
        detail="files",
        commits=[item.commit for item in commits],
        files=[file for item in commits for file in item.files],
    )
