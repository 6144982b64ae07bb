"""What the subject of a commit says of the branch that it merges."""

from __future__ import annotations

import re
from typing import Final

_MERGED: Final = (
    re.compile(r"^Merge (?:remote-tracking )?branch '([^']+)'"),
    re.compile(r"^Merge pull request #\d+ from [^/\s]+/(\S+)"),
    re.compile(r"^Merge branch (\S+) into "),
)
_REVERTS: Final = re.compile(r"^This reverts commit ([0-9a-f]{7,64})", re.MULTILINE)


def merged_branch(subject: str) -> str | None:
    """The branch that a merge brought in, as git, GitHub and GitLab word it."""
    found = next((m for m in (pattern.match(subject) for pattern in _MERGED) if m), None)
    return found[1].removeprefix("origin/") if found else None


def reverted_commit(message: str) -> str | None:
    """The commit that a message says it takes back, as `git revert` words it."""
    found = _REVERTS.search(message)
    return found[1] if found else None
