"""Plans, applies and undoes the file changes of an agent setup.

Original contents are backed up, readable by their owner only, so that undo restores every byte. A
file that was changed since the setup is neither overwritten nor removed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from reverie.agent.clone_paths import replace_atomically, resolve_inside
from reverie.agent.setup.agents import AGENTS, SetupTarget, plan_files
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
        old, new = (
            (data or b"").decode(errors="replace").splitlines(keepends=True)
            for data in (self.before, self.after)
        )
        name = str(self.path)
        return "\n".join(
            line.rstrip("\r\n")
            for line in unified_diff(
                old, new, name if self.before is not None else "/dev/null", name
            )
        )


@dataclass(frozen=True)
class UndoPlan:
    """The changes that undo a setup, and the files that somebody edited since: those stay."""

    changes: list[SetupChange]
    edited: list[Path]


def require_supported_agent(agent: str) -> None:
    """Raises `InvalidInput` for an agent that nobody knows."""
    if agent not in AGENTS:
        raise InvalidInput("agent", f"{agent} is not known; there are {', '.join(AGENTS)}")


def plan_setup(agent: str, target: SetupTarget) -> list[SetupChange]:
    """Plans the changes of an agent's setup; files that already contain it are left out.

    Raises `MalformedInput` for a file that cannot be read, and `InvalidInput` for one of the
    project that is reached through a link.
    """
    changes = []
    for path, edits in plan_files(agent, target).items():
        before = _read_current(target, path)
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

    Backups of a file that several agents read are equal. Raises `Conflict` if somebody edited a
    file since the plan; then nothing is written.
    """
    _require_unedited(target, changes)
    prune_backups(backup_folder)
    changed = {change.path: change for change in changes}
    files = plan_files(agent, target)
    folders = _created_folders(files, backup_folder)
    for path in files:
        current = _read_current(target, path)
        change = changed.get(path)
        before, after = (change.before, change.after) if change else (current, current)
        originals = _original_contents(backup_folder, path, before)
        # A file that contains all of it, but was not written by our setup, belongs to the user.
        if after is None or not (change or originals):
            continue
        backup = {
            "path": str(path),
            "before": next(iter(originals.values()), None if before is None else before.decode()),
            "after": hashlib.sha256(after).hexdigest(),
            "folders": folders[path],
        }
        for backup_path in {_backup_path(backup_folder, agent, target, path), *originals}:
            replace_atomically(backup_path, json.dumps(backup).encode(), 0o600)
        if change:
            # A file that begins like a script is started by its agent.
            mode = 0o755 if before is None and after.startswith(b"#!") else None
            replace_atomically(_resolve(target, path), after, mode)


def plan_undo(agent: str, target: SetupTarget, backup_folder: Path) -> UndoPlan:
    """Plans the removal of a setup; what another agent reads too stays unchanged."""
    plan = UndoPlan([], [])
    for path in plan_files(agent, target):
        backup = _read_backup(_backup_path(backup_folder, agent, target, path))
        if backup is None:
            continue
        try:
            current = _read_current(target, path)
        except InvalidInput:
            plan.edited.append(path)
            continue
        before = None if backup["before"] is None else backup["before"].encode()
        if current not in (None, before) and not _is_unchanged(backup, current):
            plan.edited.append(path)
            continue
        is_shared = current is None or len(_original_contents(backup_folder, path, current)) > 1
        plan.changes.append(SetupChange(path, current, current if is_shared else before))
    return plan


def apply_undo(
    agent: str, target: SetupTarget, changes: list[SetupChange], backup_folder: Path
) -> None:
    """Writes what was there before the setup, and removes the folders that the setup made.

    Raises `Conflict` if somebody edited a file since the plan; then nothing is written.
    """
    _require_unedited(target, changes)
    folders: set[Path] = set()
    for change in changes:
        backup_path = _backup_path(backup_folder, agent, target, change.path)
        backup = _read_backup(backup_path) or {}
        folders |= {Path(folder) for folder in backup.get("folders", ())}
        if change.after is None:
            _resolve(target, change.path).unlink(missing_ok=True)
        elif change.after != change.before:
            replace_atomically(_resolve(target, change.path), change.after)
        backup_path.unlink(missing_ok=True)
    for folder in sorted(folders, reverse=True):
        with suppress(OSError):
            folder.rmdir()
    prune_backups(backup_folder)


def _require_unedited(target: SetupTarget, changes: Iterable[SetupChange]) -> None:
    for change in changes:
        if _read_current(target, change.path) not in (change.before, change.after):
            raise Conflict(f"{change.path} was edited meanwhile: nothing was written; try again")


def _resolve(target: SetupTarget, path: Path) -> Path:
    """The file to read or write. A link in the person's own home is followed, one in a clone never.

    Raises `InvalidInput` for a link of a clone.
    """
    if not target.is_user_wide and path.is_relative_to(target.folder):
        return resolve_inside(target.folder, path)
    return path.resolve()


def _read_current(target: SetupTarget, path: Path) -> bytes | None:
    path = _resolve(target, path)
    return path.read_bytes() if path.exists() else None


def _created_folders(files: Iterable[Path], backup_folder: Path) -> dict[Path, list[str]]:
    """The folders above each file that are missing, or that an earlier setup made."""
    backups = [_read_backup(backup_path) for backup_path in backup_folder.glob("*.json")]
    earlier = {folder for backup in backups if backup for folder in backup["folders"]}
    return {
        path: [
            str(folder) for folder in path.parents if str(folder) in earlier or not folder.exists()
        ]
        for path in files
    }


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
        return backup if isinstance(backup["folders"], list) else None
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
