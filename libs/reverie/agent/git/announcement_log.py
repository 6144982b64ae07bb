"""State of announcements in a clone: last announced commits, and a spool of unsent changes.

`.git/reverie/announced.json` holds the last announced commit by project and branch;
`.git/reverie/spool/` holds changes that no gateway accepted yet, oldest first.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from filelock import AsyncFileLock, Timeout

from reverie.agent.clone_paths import read_json_object, replace_atomically, resolve_inside
from reverie.agent.git.repository import GitRepository
from reverie.contracts.memories.git import GitChange
from reverie.domain.core.errors import Conflict, ReverieError, Unavailable

MAX_SPOOLED: Final = 500
LOCK_TIMEOUT_SECONDS: Final = 60.0
_KEY_ERRORS: Final = frozenset({401, 403, "unauthenticated", "forbidden"})

JsonDocument = dict[str, Any]


@dataclass(frozen=True)
class ChangeReceipt:
    """The gateway's answer to a change: whether it was known, and what had no effect."""

    is_duplicate: bool
    hints: tuple[str, ...] = ()


SendChange = Callable[[JsonDocument], Awaitable[ChangeReceipt]]
"""Sends a change. Raises `Unavailable` if it may be sent again, and any other error if it was
refused."""


@dataclass(frozen=True)
class RefusedChange:
    """A queued change that the gateway rejected permanently."""

    after: str
    reason: str


@dataclass(frozen=True)
class AnnouncementOutcome:
    """The result of announcing a change, and the earlier queued changes that were `refused`.

    `queued`: the change waits in the spool, for the given `reason`. `hints` are those of the
    gateway, also for earlier changes that were sent with it.
    """

    change: GitChange
    state: Literal["announced", "duplicate", "queued"]
    reason: str = ""
    refused: tuple[RefusedChange, ...] = ()
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class AnnouncedHead:
    """The last commit of a branch that was announced, and uncommitted edits after it."""

    head: str
    edits: str | None = None


class AnnouncementLog:
    """The announcements of one clone; use it inside `locked`."""

    def __init__(self, repo: GitRepository) -> None:
        self._git_folder = repo.git_folder
        self.folder = self._git_folder / "reverie"
        self._file = self.folder / "announced.json"
        self._spool = self.folder / "spool"
        self._lock = self.folder / "lock"

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[AnnouncementLog]:
        """Only one process announces from a clone at a time.

        Raises `Conflict`, and `InvalidInput` if a link or a special file is in the place of a file.
        """
        for path in (self._spool, self._file, self._lock):
            resolve_inside(self._git_folder, path)
        self._spool.mkdir(parents=True, exist_ok=True)
        try:
            async with AsyncFileLock(self._lock, timeout=LOCK_TIMEOUT_SECONDS):
                yield self
        except Timeout:
            raise Conflict("another process announces from this clone: try again") from None

    def last_announced(self, project: str, branch: str) -> AnnouncedHead | None:
        """Returns the commit of a branch that was announced last."""
        entry = read_json_object(self._file).get(project, {}).get(branch)
        return AnnouncedHead(entry["head"], entry.get("edits")) if entry else None

    def announced_heads(self, project: str) -> list[str]:
        """The last announced commits of all branches."""
        branches = read_json_object(self._file).get(project, {})
        return [entry["head"] for entry in branches.values()]

    def record(self, project: str, branch: str, head: AnnouncedHead | None) -> None:
        """Saves the commit that was announced last; None deletes the branch."""
        announced = read_json_object(self._file)
        branches = announced.setdefault(project, {})
        if head is None:
            branches.pop(branch, None)
        else:
            branches[branch] = {"head": head.head} | ({"edits": head.edits} if head.edits else {})
        _write_json(self._file, announced)

    def spooled_files(self) -> list[Path]:
        """The spooled changes, the oldest first."""
        return sorted(
            path for path in self._spool.glob("*.json") if path.is_file() and not path.is_symlink()
        )

    def spool_change(self, document: JsonDocument) -> None:
        """Spools a change; beyond the limit, the oldest is dropped."""
        name = f"{time.time_ns():020}-{str(document.get('after'))[:12]}.json"
        _write_json(self._spool / name, document)
        for path in self.spooled_files()[:-MAX_SPOOLED]:
            path.unlink(missing_ok=True)

    async def flush(self, send: SendChange, refused: list[RefusedChange], hints: list[str]) -> None:
        """Sends the queued changes in order.

        Records permanently rejected ones in `refused`, and what the gateway says in `hints`. Raises
        the first error after which the change may be sent again, with another key or later.
        """
        for path in self.spooled_files():
            try:
                document = json.loads(path.read_text())
                hints += (await send(document)).hints
            except (ReverieError, ValueError) as error:
                # A refused key does not mean that the change is refused.
                codes = {getattr(error, "status", None), getattr(error, "code", None)}
                if isinstance(error, Unavailable) or codes & _KEY_ERRORS:
                    raise
                refused.append(RefusedChange(path.stem.partition("-")[2], str(error)))
            path.unlink(missing_ok=True)


async def announce(
    log: AnnouncementLog, change: GitChange, send: SendChange
) -> AnnouncementOutcome:
    """Sends a change after the queued ones; if no gateway accepts it now, queues it.

    Raises the error if the gateway rejected the change.
    """
    document = change.model_dump(mode="json", exclude_defaults=True)
    refused, hints = list[RefusedChange](), list[str]()
    try:
        await log.flush(send, refused, hints)
        receipt = await send(document)
    except Unavailable as error:
        log.spool_change(document)
        return AnnouncementOutcome(change, "queued", str(error), tuple(refused), tuple(hints))
    state: Literal["announced", "duplicate"] = "duplicate" if receipt.is_duplicate else "announced"
    return AnnouncementOutcome(change, state, "", tuple(refused), (*hints, *receipt.hints))


def _write_json(path: Path, value: object) -> None:
    replace_atomically(path, json.dumps(value).encode())
