"""Plans, applies and undoes the file changes of an agent setup.

Original contents are backed up, readable by their owner only, so that undo restores every byte. A
file that was changed since the setup is not overwritten.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from reverie.agent.setup.agents import AGENTS, SetupTarget
from reverie.domain.core.errors import Conflict, InvalidInput, MalformedInput

BACKUP_RETENTION_SECONDS = 30 * 86_400


@dataclass(frozen=True)
class SetupChange:
    """The current content of a file (None: it does not exist) and the planned content."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def diff(self) -> str:
        """The lines that differ, as `diff -u` shows them."""
        old, new = (_split_lines(data) for data in (self.before, self.after))
        name = str(self.path)
        return "\n".join(
            line.rstrip("\r\n")
            for line in unified_diff(
                old, new, name if self.before is not None else "/dev/null", name
            )
        )


def require_known_agent(agent: str) -> None:
    """Raises `InvalidInput` for an agent that nobody knows."""
    if agent not in AGENTS:
        raise InvalidInput("agent", f"{agent} is not known; there are {', '.join(AGENTS)}")


def plan_setup(agent: str, target: SetupTarget) -> list[SetupChange]:
    """Plans the changes of an agent's setup; files that already contain it are left out.

    Raises `MalformedInput` for a file that cannot be read.
    """
    changes = []
    for path, edits in AGENTS[agent](target).items():
        before = path.read_bytes() if path.exists() else None
        try:
            text = (before or b"").decode()
            for edit in edits:
                text = edit(text)
        except (MalformedInput, UnicodeDecodeError) as error:
            raise MalformedInput(f"{path}: {error}") from None
        after = text.encode()
        if after != before:
            changes.append(SetupChange(path, before, after))
    return changes


def apply_setup(
    agent: str, target: SetupTarget, changes: list[SetupChange], backup_folder: Path
) -> None:
    """Writes the changes; what was there the first time is kept in the folder `backup_folder`.

    Of a file that several agents read each keeps the same.
    """
    prune_backups(backup_folder)
    changed = {change.path: change for change in changes}
    for path in AGENTS[agent](target):
        current = path.read_bytes() if path.exists() else None
        change = changed.get(path)
        before, after = (change.before, change.after) if change else (current, current)
        originals = _original_contents(backup_folder, path, before)
        # A file that contains all of it, but was not written by our setup, belongs to the user.
        if after is None or not (change or originals):
            continue
        backup = {
            "path": str(path),
            "before": next(iter(originals.values())) if originals else _decode_text(before),
            "after": hashlib.sha256(after).hexdigest(),
        }
        for backup_path in {_backup_path(backup_folder, agent, target, path), *originals}:
            _write_atomically(backup_path, json.dumps(backup).encode(), 0o600)
        if change:
            _write_atomically(path, after)


def plan_undo(agent: str, target: SetupTarget, backup_folder: Path) -> list[SetupChange]:
    """Plans the removal of a setup; what another agent reads too stays unchanged.

    Raises `Conflict` if a file was changed since.
    """
    changes = []
    for path in AGENTS[agent](target):
        backup = _read_backup(_backup_path(backup_folder, agent, target, path))
        if backup is None:
            continue
        current = path.read_bytes() if path.exists() else None
        before = None if backup["before"] is None else backup["before"].encode()
        if current not in (None, before) and not _is_unchanged(backup, current):
            raise Conflict(f"{path} was changed since `reverie setup`: take it out by hand")
        is_shared = current is None or len(_original_contents(backup_folder, path, current)) > 1
        changes.append(SetupChange(path, current, current if is_shared else before))
    return changes


def apply_undo(
    agent: str, target: SetupTarget, changes: list[SetupChange], backup_folder: Path
) -> None:
    """Writes what was there before the setup."""
    for change in changes:
        if change.after is None:
            change.path.unlink(missing_ok=True)
            with suppress(OSError):
                # The setup made the agent's folder, if nothing else is in it.
                change.path.parent.rmdir()
        elif change.after != change.before:
            _write_atomically(change.path, change.after)
        _backup_path(backup_folder, agent, target, change.path).unlink(missing_ok=True)
    prune_backups(backup_folder)


def prune_backups(backup_folder: Path) -> None:
    """Deletes backups of files that no longer exist.

    If the folder is missing too, its disk may return, so the backup is kept for a month.
    """
    for backup_path in backup_folder.glob("*.json"):
        backup = _read_backup(backup_path)
        path = Path(backup["path"]) if backup else backup_path
        is_recent = time.time() - backup_path.stat().st_mtime < BACKUP_RETENTION_SECONDS
        if backup is None or not (path.exists() or (is_recent and not path.parent.exists())):
            backup_path.unlink(missing_ok=True)
    if backup_folder.is_dir() and not any(backup_folder.iterdir()):
        backup_folder.rmdir()


def _is_unchanged(backup: dict[str, Any], current: bytes | None) -> bool:
    """Returns whether a file contains what the setup wrote."""
    return current is not None and hashlib.sha256(current).hexdigest() == backup["after"]


def _original_contents(
    backup_folder: Path, path: Path, current: bytes | None
) -> dict[Path, str | None]:
    """Returns the original content, from the backups of all agents with a setup in the file."""
    backups = {
        backup_path: backup
        for backup_path in backup_folder.glob("*.json")
        if (backup := _read_backup(backup_path))
    }
    return {
        backup_path: backup["before"]
        for backup_path, backup in backups.items()
        if backup["path"] == str(path) and _is_unchanged(backup, current)
    }


def _backup_path(backup_folder: Path, agent: str, target: SetupTarget, path: Path) -> Path:
    name = hashlib.sha256(f"{agent}\0{target.is_user_wide}\0{path}".encode()).hexdigest()[:24]
    return backup_folder / f"{name}.json"


def _read_backup(path: Path) -> dict[str, Any] | None:
    try:
        backup: dict[str, Any] = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return backup


def _write_atomically(path: Path, data: bytes, mode: int | None = None) -> None:
    """Replaces a file at once, with the mode it has; a link stays a link."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode is None:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    temporary.chmod(mode)
    temporary.replace(path)


def _decode_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def _split_lines(data: bytes | None) -> list[str]:
    return (data or b"").decode(errors="replace").splitlines(keepends=True)
