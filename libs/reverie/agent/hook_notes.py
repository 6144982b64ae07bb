"""What hooks note between two calls: which session, how far it was sent, what is still to send.

One folder, `hooks` in the home folder, readable by its owner alone. A note holds names and
positions, and of what was said only what is redacted: a transcript that could not be sent is read
again from where it stands.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST_SESSIONS = 500
"""Sessions that are noted; beyond them the oldest is forgotten."""
OLDEST_SECONDS = 30 * 86400


class Notes:
    """The notes of one agent's session: `facts` of the hooks themselves, `sent` of the sender."""

    def __init__(self, folder: str, agent: str, external: str) -> None:
        self.folder = folder
        self.agent = agent
        self.external = external
        self._path = os.path.join(folder, _file_name(f"{agent} {external}"))
        self.facts: dict[str, Any] = _read(f"{self._path}.json")

    def save(self, **facts: object) -> None:
        """Notes facts beside those that are there."""
        self.facts = {**_read(f"{self._path}.json"), **facts}
        self.facts |= {"agent": self.agent, "external": self.external}
        _write(f"{self._path}.json", self.facts)

    @property
    def sent(self) -> dict[str, Any]:
        """How far the sender came. Only who holds `alone` may change it."""
        return _read(f"{self._path}.sent.json")

    def save_sent(self, **facts: object) -> None:
        """Notes how far the sender came."""
        _write(f"{self._path}.sent.json", {**self.sent, **facts})

    @property
    def spool(self) -> str:
        """Where turns wait that are in no transcript."""
        return f"{self._path}.spool"

    @property
    def waits(self) -> bool:
        """Whether something could not be sent."""
        return os.path.exists(f"{self._path}.waits")

    def wait(self, waits: bool) -> None:
        """Notes that something is still to send, or that all is."""
        if waits:
            os.close(_open(f"{self._path}.waits"))
            os.utime(f"{self._path}.waits")
        else:
            _remove(f"{self._path}.waits")

    def alone(self) -> int:
        """A descriptor that keeps other senders of the session out until it is closed."""
        fd = _open(f"{self._path}.lock")
        fcntl.flock(fd, fcntl.LOCK_EX)
        return fd


def waiting(folder: str, limit: int = 20) -> Iterator[Notes]:
    """The sessions of which something is still to send; what was tried last comes last."""
    ages = {name: _age(os.path.join(folder, f"{name}.waits")) for name in _names(folder, ".waits")}
    for name in sorted(ages, key=lambda name: -ages[name])[:limit]:
        facts = _read(os.path.join(folder, f"{name}.json"))
        if facts.get("agent") and facts.get("external"):
            yield Notes(folder, facts["agent"], facts["external"])
        else:
            _remove(os.path.join(folder, f"{name}.waits"))


def tidy(folder: str) -> None:
    """Forgets sessions of long ago, and the oldest where there are too many."""
    ages = {name: _age(os.path.join(folder, f"{name}.json")) for name in _names(folder, ".json")}
    by_age = sorted(ages, key=lambda name: ages[name])
    for name in by_age:
        if ages[name] > OLDEST_SECONDS or by_age.index(name) >= MOST_SESSIONS:
            for end in (".json", ".sent.json", ".waits", ".lock", ".spool"):
                _remove(os.path.join(folder, name + end))


def _file_name(text: str) -> str:
    """A name that is safe in every folder, and another for another text."""
    return "".join(
        c if (c.isascii() and c.isalnum()) or c == "-" else f"_{ord(c):x}_" for c in text
    )[-180:]


def _names(folder: str, end: str) -> list[str]:
    try:
        found = os.listdir(folder)
    except OSError:
        return []
    return sorted(
        name.removesuffix(end)
        for name in found
        if name.endswith(end) and not name.endswith(".sent.json")
    )


def _age(path: str) -> float:
    try:
        return time.time() - os.stat(path).st_mtime
    except OSError:
        return 0.0


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: str, facts: dict[str, Any]) -> None:
    """Replaces a file at once."""
    new = f"{path}.{os.getpid()}"
    fd = _open(new, os.O_TRUNC)
    with open(fd, "w", encoding="utf-8") as file:
        json.dump(facts, file)
    os.replace(new, path)


def _open(path: str, more: int = 0) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | more
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        folder = os.path.dirname(path)
        os.makedirs(os.path.dirname(folder), 0o711, exist_ok=True)
        os.makedirs(folder, 0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        return
