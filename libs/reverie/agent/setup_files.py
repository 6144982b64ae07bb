"""Planning, making and taking back what a setup changes.

What stood in a file is kept beside, readable by its owner alone, so that a setup that is undone
leaves every byte as it was. A file that was changed since is not overwritten.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from reverie.agent.setup_agents import AGENTS, Place
from reverie.domain.errors import Conflict, Invalid, Malformed

KEPT_SECONDS = 30 * 86_400


@dataclass(frozen=True)
class Change:
    """What a file holds (None: it is not there) and what it shall hold."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def diff(self) -> str:
        """The lines that differ, as `diff -u` shows them."""
        old, new = (_lines(data) for data in (self.before, self.after))
        name = str(self.path)
        return "\n".join(
            line.rstrip("\r\n")
            for line in unified_diff(
                old, new, name if self.before is not None else "/dev/null", name
            )
        )


def known(agent: str) -> None:
    """Raises `Invalid` for an agent that nobody knows."""
    if agent not in AGENTS:
        raise Invalid("agent", f"{agent} is not known; there are {', '.join(AGENTS)}")


def planned(agent: str, place: Place) -> list[Change]:
    """What the setup of an agent would change; files that have it already are left out.

    Raises `Malformed` for a file that cannot be read.
    """
    changes = []
    for path, edits in AGENTS[agent](place).items():
        before = path.read_bytes() if path.exists() else None
        try:
            text = (before or b"").decode()
            for edit in edits:
                text = edit(text)
        except (Malformed, UnicodeDecodeError) as error:
            raise Malformed(f"{path}: {error}") from None
        after = text.encode()
        if after != before:
            changes.append(Change(path, before, after))
    return changes


def made(agent: str, place: Place, changes: list[Change], kept: Path) -> None:
    """Writes the changes; what was there the first time is kept in the folder `kept`.

    Of a file that several agents read each keeps the same.
    """
    tidy(kept)
    changed = {change.path: change for change in changes}
    for path in AGENTS[agent](place):
        now = path.read_bytes() if path.exists() else None
        change = changed.get(path)
        before, after = (change.before, change.after) if change else (now, now)
        standing = _standing(kept, path, before)
        # What holds it all, and was written by no setup of ours, is left to its owner.
        if after is None or not (change or standing):
            continue
        facts = {
            "path": str(path),
            "before": next(iter(standing.values())) if standing else _text(before),
            "after": hashlib.sha256(after).hexdigest(),
        }
        for note in {_note(kept, agent, place, path), *standing}:
            _write(note, json.dumps(facts).encode(), 0o600)
        if change:
            _write(path, after)


def undone(agent: str, place: Place, kept: Path) -> list[Change]:
    """What taking the setup back would change; what another agent reads too stays as it is.

    Raises `Conflict` where a file was changed since.
    """
    changes = []
    for path in AGENTS[agent](place):
        facts = _read(_note(kept, agent, place, path))
        if facts is None:
            continue
        now = path.read_bytes() if path.exists() else None
        before = None if facts["before"] is None else facts["before"].encode()
        if now not in (None, before) and not _stands(facts, now):
            raise Conflict(f"{path} was changed since `reverie setup`: take it out by hand")
        stays = now is None or len(_standing(kept, path, now)) > 1
        changes.append(Change(path, now, now if stays else before))
    return changes


def take_back(agent: str, place: Place, changes: list[Change], kept: Path) -> None:
    """Writes what was there before the setup."""
    for change in changes:
        if change.after is None:
            change.path.unlink(missing_ok=True)
        elif change.after != change.before:
            _write(change.path, change.after)
        _note(kept, agent, place, change.path).unlink(missing_ok=True)
    tidy(kept)


def tidy(kept: Path) -> None:
    """Lets go of what was kept of files that are gone: there is nothing to take back any more.

    What lies in a folder that is gone too may come back with its disk, so it is kept for a month.
    """
    for note in kept.glob("*.json"):
        facts = _read(note)
        path = Path(facts["path"]) if facts else note
        lately = time.time() - note.stat().st_mtime < KEPT_SECONDS
        if facts is None or not (path.exists() or (lately and not path.parent.exists())):
            note.unlink(missing_ok=True)
    if kept.is_dir() and not any(kept.iterdir()):
        kept.rmdir()


def _stands(facts: dict[str, Any], now: bytes | None) -> bool:
    """Whether a file holds what the setup wrote."""
    return now is not None and hashlib.sha256(now).hexdigest() == facts["after"]


def _standing(kept: Path, path: Path, now: bytes | None) -> dict[Path, str | None]:
    """What was there before, by the notes of all agents whose setup the file still holds."""
    read = {note: facts for note in kept.glob("*.json") if (facts := _read(note))}
    return {
        note: facts["before"]
        for note, facts in read.items()
        if facts["path"] == str(path) and _stands(facts, now)
    }


def _note(kept: Path, agent: str, place: Place, path: Path) -> Path:
    name = hashlib.sha256(f"{agent}\0{place.user}\0{path}".encode()).hexdigest()[:24]
    return kept / f"{name}.json"


def _read(note: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(note.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return found


def _write(path: Path, data: bytes, mode: int | None = None) -> None:
    """Replaces a file at once, with the mode it has; a link stays a link."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode is None:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    new.chmod(mode)
    new.replace(path)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode(errors="replace").splitlines(keepends=True)
