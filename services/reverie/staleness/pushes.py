"""Push webhooks of GitHub and GitLab: whether they are signed, and the changes that they tell.

They list commits with the names of files, neither hunks nor renames: so a file that was removed
beside an addition may live on there, and says so.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, Protocol

from pydantic import BaseModel, ConfigDict, Field

from reverie.contracts.base import Moment, RepoPath
from reverie.contracts.git import HEADS, MAX_COMMITS, GitChange, Sha, SomeSha
from reverie.domain.merges import merged_branch, reverted_commit
from reverie.runtime.body import parse_value

GITHUB_LISTS: Final = 2048
"""The most commits that GitHub names in one push."""
TOLERATED_SECONDS: Final = 300
MOST_COMPARED: Final = 64
"""Added files that a removed one is compared with."""
_SUBJECT: Final = 2000


class Told(BaseModel):
    """What a forge sends: of its many fields those that are read."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class PushedCommit(Told):
    """A commit of a push."""

    id: Sha
    message: str = ""
    timestamp: Moment
    added: list[RepoPath] = Field(default_factory=list)
    modified: list[RepoPath] = Field(default_factory=list)
    removed: list[RepoPath] = Field(default_factory=list)


class _Repository(Told):
    full_name: str | None = None
    path_with_namespace: str | None = None
    default_branch: str | None = None


class Push(Told):
    """A push as GitHub tells it; GitLab's is read as the same."""

    ref: str
    before: SomeSha = None
    after: SomeSha = None
    forced: bool = False
    repository: _Repository = _Repository()
    project: _Repository = _Repository()
    commits: list[PushedCommit] = Field(default_factory=list, max_length=MAX_COMMITS)
    total_commits_count: int | None = None

    @property
    def listed_all(self) -> bool:
        """Whether no commit was left out."""
        if self.total_commits_count is not None:
            return self.total_commits_count <= len(self.commits)
        return len(self.commits) < GITHUB_LISTS


class Headers(Protocol):
    """What was sent beside a body; names in any case."""

    def get(self, name: str, default: str, /) -> str: ...


def signed_by_github(secret: str, body: bytes, headers: Headers) -> bool:
    """Whether GitHub signed the body with the secret: HMAC-SHA256 in `X-Hub-Signature-256`."""
    made = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return _same(f"sha256={made}", headers.get("X-Hub-Signature-256", ""))


def signed_by_gitlab(secret: str, body: bytes, headers: Headers, now: float) -> bool:
    """Whether GitLab signed the body, by the Standard Webhooks specification, or else sent the
    secret itself in `X-Gitlab-Token`. A signature older than five minutes does not count."""
    signatures = headers.get("webhook-signature", "")
    if not signatures:
        return _same(secret, headers.get("X-Gitlab-Token", ""))
    at, key = headers.get("webhook-timestamp", ""), _signing_key(secret)
    if key is None or not at.isdecimal() or abs(now - int(at[:12])) > TOLERATED_SECONDS:
        return False
    told = f"{headers.get('webhook-id', '')}.{at}.".encode() + body
    made = base64.b64encode(hmac.new(key, told, hashlib.sha256).digest()).decode()
    return any(_same(f"v1,{made}", one) for one in signatures.split())


def _signing_key(secret: str) -> bytes | None:
    """The key that a signing token stands for."""
    if not secret.startswith("whsec_"):
        return None
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        return None


def _same(wanted: str, given: str) -> bool:
    """In a time that tells nothing of where they differ."""
    return hmac.compare_digest(wanted.encode(), given.encode(errors="replace"))


@dataclass(frozen=True)
class Unheard:
    """A push that changes no branch."""

    reason: str


def change_in(push: Push, project: str) -> GitChange | Unheard:
    """The change of a push. Raises `Invalid` naming what no change may hold."""
    if not push.ref.startswith(HEADS):
        return Unheard("it is no push to a branch")
    merged = [name for one in push.commits if (name := merged_branch(_subject(one)))]
    at = push.repository if push.repository.full_name else push.project
    return parse_value(
        GitChange,
        {
            "project": project,
            "repository": at.full_name or at.path_with_namespace,
            "branch": push.ref,
            "default_branch": at.default_branch,
            "before": push.before,
            "after": push.after,
            "deleted": push.after is None,
            "forced": push.forced,
            "merge": bool(merged),
            "merged": list(dict.fromkeys(merged))[:100],
            "detail": "files",
            "partial": not push.listed_all,
            "commits": [_commit(one) for one in push.commits],
            "files": [file for one in push.commits for file in _files(one)],
        },
    )


def _subject(commit: PushedCommit) -> str:
    return commit.message.partition("\n")[0][:_SUBJECT]


def _commit(commit: PushedCommit) -> Mapping[str, Any]:
    return {
        "sha": commit.id,
        "subject": _subject(commit),
        "committed_at": commit.timestamp.isoformat(),
        "reverts": reverted_commit(commit.message),
    }


def _files(commit: PushedCommit) -> Iterator[dict[str, Any]]:
    """The files of one commit; what was removed last, with where it may be now."""
    for status, paths in (("added", commit.added), ("modified", commit.modified)):
        for path in paths:
            yield {"path": path, "status": status, "commit": commit.id}
    homes = Homes(commit.added)
    for path in commit.removed:
        perhaps = homes.likely(path)
        yield {"path": path, "status": "deleted", "commit": commit.id, "perhaps": perhaps}


class Homes:
    """The added files of a commit, by what a removed one that lives on in them shares with them."""

    def __init__(self, added: Sequence[str]) -> None:
        self._by: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for one in added:
            path = PurePosixPath(one)
            for alike in _alike(path):
                self._by[alike].append(one)
                self._by[(*alike, path.parent.name)].append(one)

    def likely(self, path: str) -> str | None:
        """Which of them a removed file may be now: the one most alike by name, then by folder.

        None where nothing was added. Of very many of one name, those are looked at whose folder
        has the name of its own.
        """
        gone = PurePosixPath(path)
        folders = set(gone.parent.parts)

        def shared(other: str) -> int:
            return len(folders.intersection(PurePosixPath(other).parent.parts))

        for alike in _alike(gone):
            found = self._by.get(alike)
            if found and len(found) > MOST_COMPARED:
                found = self._by.get((*alike, gone.parent.name), found)[:MOST_COMPARED]
            if found:
                return max(found, key=shared)
        return None


def _alike(path: PurePosixPath) -> tuple[tuple[str, ...], ...]:
    """What two paths may share, the most telling first: the name, what is before its suffix, the
    suffix, nothing."""
    return ("name", path.name), ("stem", path.stem), ("suffix", path.suffix), ("any",)
