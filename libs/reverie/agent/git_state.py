"""What was announced from a clone, and what waits to be: kept in git's own folder of it.

`reverie/announced.json` holds by project and branch the last commit that was told; `reverie/spool/`
the changes that no gateway took, the oldest first.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from filelock import AsyncFileLock, Timeout

from reverie.agent.git_repo import Repo
from reverie.contracts.git import GitChange
from reverie.domain.errors import Conflict, ReverieError, Unavailable

MOST_KEPT: Final = 500
LOCK_SECONDS: Final = 60.0
_KEY: Final = frozenset({401, 403, "unauthenticated", "forbidden"})

Document = dict[str, Any]
Send = Callable[[Document], Awaitable[bool]]
"""Hands a change to a gateway; whether it was known there. Raises `Unavailable` where it may be
sent again, any other error where it was refused."""


@dataclass(frozen=True)
class Refusal:
    """A change that waited and was refused for good when its turn came."""

    after: str
    why: str


@dataclass(frozen=True)
class Outcome:
    """What became of a change, and which that waited before it were `refused`.

    `kept`: it waits in the spool; `why` then says for what.
    """

    change: GitChange
    state: Literal["announced", "known", "kept"]
    why: str = ""
    refused: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class Told:
    """The last commit of a branch that was announced, and uncommitted edits after it."""

    head: str
    edits: str | None = None


class Ledger:
    """The memory of one clone; use it inside `held`, which keeps others out."""

    def __init__(self, repo: Repo) -> None:
        self.folder = repo.folder / "reverie"
        self._file = self.folder / "announced.json"
        self._spool = self.folder / "spool"

    @asynccontextmanager
    async def held(self) -> AsyncIterator[Ledger]:
        """Only one process announces from a clone at a time. Raises `Conflict`."""
        self._spool.mkdir(parents=True, exist_ok=True)
        try:
            async with AsyncFileLock(self.folder / "lock", timeout=LOCK_SECONDS):
                yield self
        except Timeout:
            raise Conflict("another process announces from this clone: try again") from None

    def told(self, project: str, branch: str) -> Told | None:
        """What was last announced of a branch."""
        found = self._read().get(project, {}).get(branch)
        return Told(found["head"], found.get("edits")) if found else None

    def heads(self, project: str) -> list[str]:
        """The last announced commits of all branches."""
        return [one["head"] for one in self._read().get(project, {}).values()]

    def note(self, project: str, branch: str, told: Told | None) -> None:
        """Remembers what was announced last; None forgets the branch."""
        known = self._read()
        of_project = known.setdefault(project, {})
        if told is None:
            of_project.pop(branch, None)
        else:
            of_project[branch] = {"head": told.head} | ({"edits": told.edits} if told.edits else {})
        _write(self._file, known)

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            known = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}

    def waiting(self) -> list[Path]:
        """The spooled changes, the oldest first."""
        return sorted(self._spool.glob("*.json"))

    def keep(self, document: Document) -> None:
        """Spools a change; of too many the oldest goes."""
        name = f"{time.time_ns():020}-{str(document.get('after'))[:12]}.json"
        _write(self._spool / name, document)
        for old in self.waiting()[:-MOST_KEPT]:
            old.unlink(missing_ok=True)

    async def flush(self, send: Send, refused: list[Refusal]) -> None:
        """Sends what waits, in order, and notes what is `refused` for good.

        Raises what the first met that may be sent again, with another key or later.
        """
        for path in self.waiting():
            try:
                document = json.loads(path.read_text())
                await send(document)
            except (ReverieError, ValueError) as error:
                if isinstance(error, Unavailable) or _for_the_key(error):
                    raise
                refused.append(Refusal(path.stem.partition("-")[2], str(error)))
            path.unlink(missing_ok=True)


async def announce(ledger: Ledger, change: GitChange, send: Send) -> Outcome:
    """Sends a change after those that wait; where no gateway takes it now, it waits with them.

    Raises what refused it.
    """
    document = change.model_dump(mode="json", exclude_defaults=True)
    refused: list[Refusal] = []
    try:
        await ledger.flush(send, refused)
        known = await send(document)
    except Unavailable as error:
        ledger.keep(document)
        return Outcome(change, "kept", str(error), tuple(refused))
    return Outcome(change, "known" if known else "announced", "", tuple(refused))


def _for_the_key(error: Exception) -> bool:
    """Whether it was the key that was refused, and not the change."""
    return getattr(error, "status", None) in _KEY or getattr(error, "code", None) in _KEY


def _write(path: Path, value: object) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(f".{os.getpid()}.tmp")
    made.write_text(json.dumps(value))
    made.replace(path)
