"""State that hooks store between calls: session facts, delivery cursors, pending work.

The files are in `hooks` in the home folder and readable by their owner only. They contain names,
positions and redacted text.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

# Not imported from `typing`, which is slow to import: a hook starts at every turn.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MAX_SESSIONS = 500
"""Number of sessions whose state is kept; beyond it the oldest is deleted."""
MAX_PENDING = 20
"""Number of pending sessions that are sent at once."""
MAX_AGE_SECONDS = 30 * 86400
MAX_NAME_CHARS = 180


class HookSessionState:
    """The stored state of one agent's session.

    `facts` are written by the hooks, `delivery_state` by the sender.
    """

    def __init__(self, folder: str, agent: str, external_id: str) -> None:
        self.folder = folder
        self.agent = agent
        self.external_id = external_id
        self._path = os.path.join(folder, _encode_file_name(f"{agent} {external_id}"))
        self.facts: dict[str, Any] = _read_json(f"{self._path}.json")

    def save(self, **facts: object) -> None:
        """Adds facts to the stored ones."""
        self.facts = {**_read_json(f"{self._path}.json"), **facts}
        self.facts |= {"agent": self.agent, "external": self.external_id}
        _write_atomically(f"{self._path}.json", self.facts)

    @property
    def delivery_state(self) -> dict[str, Any]:
        """Delivery cursor. Change it only while holding `acquire_lock`."""
        return _read_json(f"{self._path}.sent.json")

    def save_delivery_state(self, **facts: object) -> None:
        """Saves the delivery cursor."""
        _write_atomically(f"{self._path}.sent.json", {**self.delivery_state, **facts})

    @property
    def spool_path(self) -> str:
        """The file of turns that are in no transcript."""
        return f"{self._path}.spool"

    def set_pending(self, pending: bool) -> None:
        """Marks the session as pending, or as fully sent."""
        if pending:
            os.close(_open_private(f"{self._path}.waits"))
            os.utime(f"{self._path}.waits")
        else:
            _remove_file(f"{self._path}.waits")

    def acquire_lock(self) -> int:
        """A descriptor that keeps other senders of the session out until it is closed."""
        fd = _open_private(f"{self._path}.lock")
        fcntl.flock(fd, fcntl.LOCK_EX)
        return fd


def iter_pending_sessions(folder: str) -> Iterator[HookSessionState]:
    """Yields the sessions with unsent turns, least recently tried first."""
    ages = {
        name: _age_seconds(os.path.join(folder, f"{name}.waits"))
        for name in _list_names(folder, ".waits")
    }
    for name in sorted(ages, key=lambda name: -ages[name])[:MAX_PENDING]:
        facts = _read_json(os.path.join(folder, f"{name}.json"))
        if facts.get("agent") and facts.get("external"):
            yield HookSessionState(folder, facts["agent"], facts["external"])
        else:
            _remove_file(os.path.join(folder, f"{name}.waits"))


def prune_sessions(folder: str) -> None:
    """Deletes old sessions, and the oldest if there are too many."""
    ages = {
        name: _age_seconds(os.path.join(folder, f"{name}.json"))
        for name in _list_names(folder, ".json")
    }
    for rank, name in enumerate(sorted(ages, key=lambda name: ages[name])):
        if ages[name] > MAX_AGE_SECONDS or rank >= MAX_SESSIONS:
            for suffix in (".json", ".sent.json", ".waits", ".lock", ".spool"):
                _remove_file(os.path.join(folder, name + suffix))


def _encode_file_name(text: str) -> str:
    """Returns a file name that is safe and unique per text."""
    name = "".join(
        char if (char.isascii() and char.isalnum()) or char == "-" else f"_{ord(char):x}_"
        for char in text[:MAX_NAME_CHARS]
    )
    if len(text) <= MAX_NAME_CHARS and len(name) <= MAX_NAME_CHARS:
        return name
    from hashlib import sha256

    return f"{name[: MAX_NAME_CHARS - 65]}.{sha256(text.encode(errors='replace')).hexdigest()}"


def _list_names(folder: str, suffix: str) -> list[str]:
    try:
        entries = os.listdir(folder)
    except OSError:
        return []
    return sorted(
        name.removesuffix(suffix)
        for name in entries
        if name.endswith(suffix) and not name.endswith(".sent.json")
    )


def _age_seconds(path: str) -> float:
    try:
        return time.time() - os.stat(path).st_mtime
    except OSError:
        return 0.0


def _read_json(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _write_atomically(path: str, facts: dict[str, Any]) -> None:
    """Replaces a file at once."""
    temporary = f"{path}.{os.getpid()}"
    fd = _open_private(temporary, os.O_TRUNC)
    with open(fd, "w", encoding="utf-8") as file:
        json.dump(facts, file)
    os.replace(temporary, path)


def _open_private(path: str, extra_flags: int = 0) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | extra_flags
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        folder = os.path.dirname(path)
        os.makedirs(os.path.dirname(folder), 0o711, exist_ok=True)
        os.makedirs(folder, 0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def _remove_file(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        return
