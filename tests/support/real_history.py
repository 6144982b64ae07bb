"""The commit history of a public project as git-change events, where the data is present.

The data is no part of the repository: it is looked for beside it, in `../shared/data`, or where
`PYTEST_REVERIE_DATA` says.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from reverie.contracts.memories.git import GitChange
from reverie.domain.staleness.file_changes import FileChangeStep
from reverie.store.staleness.stale_marks import FileHistoryStep
from reverie_services.staleness.marks.row_parsing import parse_step

BESIDE = Path(__file__).parents[3] / "shared" / "data"
DATA = Path(os.environ.get("PYTEST_REVERIE_DATA", BESIDE))
HISTORY = DATA / "git-history" / "getspecstory.jsonl"
PROJECT = "getspecstory"

needs_history = pytest.mark.skipif(
    not HISTORY.exists(),
    reason=f"the real git history is not here: expected at {HISTORY} (or set PYTEST_REVERIE_DATA)",
)


def read_history(*, merges: bool = False) -> Iterator[GitChange]:
    """One event a commit, oldest first.

    A merge tells again what its branch's commits told, against its first parent; it is left
    out unless asked for.
    """
    with HISTORY.open() as lines:
        commits = [json.loads(line) for line in lines]
    return (change_of_commit(commit) for commit in commits if merges or not commit["merge"])


def change_of_commit(commit: dict[str, Any]) -> GitChange:
    """The event of one line of the history file."""
    told = {"sha": commit["sha"], "subject": commit["subject"]}
    body = {
        "project": PROJECT,
        "branch": "main",
        "before": next(iter(commit["parents"]), None),
        "after": commit["sha"],
        "commits": [told | {"committed_at": commit["committed_at"]}],
        "files": [
            {key: file[key] for key in ("path", "status", "old_path", "hunks") if key in file}
            for file in commit["files"]
        ],
    }
    return GitChange.model_validate_json(json.dumps(body))


def steps_of(change: GitChange) -> list[FileChangeStep]:
    """The same change as the rules of staleness read it, file by file."""
    commit = change.commits[-1]
    told = {"commit": commit.sha, "subject": commit.subject}
    told["committed_at"] = commit.committed_at.isoformat()
    return [
        parse_step(
            FileHistoryStep(
                event=UUID(int=0),
                branch=change.branch,
                main=True,
                known_at=commit.committed_at,
                facts=file.model_dump(mode="json", exclude_defaults=True) | told,
            )
        )
        for file in change.files
    ]
