"""The home folder of a local installation: its paths, secrets and run files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reverie.domain.core.errors import Misconfigured


@dataclass(frozen=True)
class Home:
    """Paths below REVERIE_HOME; nothing is written outside of it."""

    root: Path

    @property
    def postgres(self) -> Path:
        """The data folder of Postgres (`PGDATA`)."""
        return self.root / "postgres"

    @property
    def nats(self) -> Path:
        """Configuration and JetStream store of NATS."""
        return self.root / "nats"

    @property
    def secrets(self) -> Path:
        """Generated passwords and the first key, one file each, mode 0600."""
        return self.root / "secrets"

    @property
    def run(self) -> Path:
        """The folder of runtime state: ports, process ids, the lock."""
        return self.root / "run"

    @property
    def logs(self) -> Path:
        """One log file per child process."""
        return self.root / "logs"

    @property
    def bin(self) -> Path:
        """The folder for a copy of the Postgres binaries, if the installed ones are unreadable."""
        return self.root / "bin"


def open_home(root: Path) -> Home:
    """Opens the folder tree and creates missing folders; existing folders keep their modes.

    Raises `Misconfigured` if the folder cannot be written.
    """
    home = Home(root.expanduser().resolve())
    # 0711 on the way to the data: root hands Postgres to `nobody`, who must pass through.
    modes = {home.root: 0o711, home.run: 0o711, home.logs: 0o700}
    modes |= {home.secrets: 0o700, home.nats: 0o700}
    try:
        for folder, mode in modes.items():
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(mode)
    except OSError as error:
        raise _unusable_error(home.root, error.strerror or str(error)) from None
    if not os.access(home.run, os.W_OK):
        raise _unusable_error(home.root, "it belongs to another user")
    return home


def existing_home(root: Path) -> Home | None:
    """Returns the folder tree if it exists; creates nothing."""
    home = Home(root.expanduser().resolve())
    return home if home.run.is_dir() else None


def _unusable_error(root: Path, reason: str) -> Misconfigured:
    return Misconfigured(
        "REVERIE_HOME", f"{root} cannot be used ({reason}): choose a folder you can write to"
    )


def get_or_create_secret(home: Home, name: str) -> str:
    """The secret kept in `secrets/NAME`, made up (256 bits) on first use."""
    if existing := read_secret(home, name):
        return existing
    from secrets import token_urlsafe

    return write_secret(home, name, token_urlsafe(32))


def read_secret(home: Home, name: str) -> str | None:
    """Returns the secret in `secrets/NAME`, or None."""
    try:
        return (home.secrets / name).read_text().strip() or None
    except FileNotFoundError:
        return None


def write_secret(home: Home, name: str, value: str) -> str:
    """Keep a secret in `secrets/NAME`, readable by its owner alone."""
    write_private_file(home.secrets / name, value + "\n")
    return value


def write_private_file(path: Path, text: str) -> None:
    """Replace a file at once; it is readable by its owner alone from its first byte on."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def write_run_file(home: Home, name: str, state: dict[str, Any]) -> None:
    """Note in `run/NAME.json` what is running."""
    write_private_file(home.run / f"{name}.json", json.dumps(state, indent=2) + "\n")


def read_run_file(home: Home, name: str) -> dict[str, Any]:
    """The note in `run/NAME.json`, or nothing."""
    try:
        state = json.loads((home.run / f"{name}.json").read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def delete_run_file(home: Home, name: str) -> None:
    """Deletes the file `run/NAME.json`."""
    (home.run / f"{name}.json").unlink(missing_ok=True)
