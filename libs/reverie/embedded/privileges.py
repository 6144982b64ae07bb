"""Chooses the user account that Postgres runs as when the supervisor runs as root.

Postgres refuses to run as root, so root runs it as `nobody`. If a folder above the data is closed
to that user (`/root` usually is), the child keeps only the capability to pass through folders.
"""

from __future__ import annotations

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reverie.contracts.host_system import is_linux
from reverie.domain.core.errors import Misconfigured

READ_SEARCH = ("dac_read_search", 2)
OVERRIDE = ("dac_override", 1)
SETPCAP = 8
CAPABILITIES = (READ_SEARCH, OVERRIDE)
"""Name and bit of the capabilities that pass closed folders, the smaller power first."""


@dataclass(frozen=True)
class RunAccount:
    """The user and the command prefix of a child process."""

    uid: int | None = None
    gid: int | None = None
    prefix: tuple[str, ...] = ()

    @property
    def passes_closed_folders(self) -> bool:
        """Whether the child keeps a capability."""
        return bool(self.prefix)

    def options(self) -> dict[str, Any]:
        """Keyword arguments for `subprocess.Popen`."""
        if self.uid is None or self.prefix:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def make_owner(self, path: Path) -> None:
        """Make the child the owner of a file or folder."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


def choose_account(data: Path) -> RunAccount:
    """Chooses the user for a server with its data at `data`.

    Raises `Misconfigured` for root if no other user can reach the data.
    """
    if os.geteuid() != 0:
        return RunAccount()
    uid, gid = _choose_owner(data)
    if is_reachable(data.parent, uid, gid):
        return RunAccount(uid, gid)
    return RunAccount(uid, gid, _setpriv_prefix(data, uid, gid))


def is_reachable(folder: Path, uid: int, gid: int) -> bool:
    """Whether that user can walk from the root folder into `folder`, by the modes alone."""
    return all(_has_execute_bit(parent.stat(), uid, gid) for parent in (folder, *folder.parents))


def is_executable(binary: Path, uid: int, gid: int) -> bool:
    """Whether that user may execute the file once it is reached, by its mode alone."""
    return _has_execute_bit(binary.stat(), uid, gid)


def _has_execute_bit(status: os.stat_result, uid: int, gid: int) -> bool:
    if status.st_uid == uid:
        return bool(status.st_mode & 0o100)
    return bool(status.st_mode & (0o010 if status.st_gid == gid else 0o001))


def _choose_owner(data: Path) -> tuple[int, int]:
    # Data that a normal user made first stays that user's: Postgres insists on owning it.
    if data.exists() and (status := data.stat()).st_uid != 0:
        return status.st_uid, status.st_gid
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise _no_access_error(data, "there is no user `nobody` to run Postgres as") from None
    return nobody.pw_uid, nobody.pw_gid


def _setpriv_prefix(data: Path, uid: int, gid: int) -> tuple[str, ...]:
    capabilities, setpriv = permitted_capabilities(), shutil.which("setpriv")
    usable = [
        name
        for name, bit in CAPABILITIES
        if capabilities >> bit & 1 and capabilities >> SETPCAP & 1
    ]
    if not usable or setpriv is None:
        missing = "`setpriv` is not installed" if usable else "no capability to pass it is held"
        raise _no_access_error(data, f"a folder above it is closed to other users and {missing}")
    change = f"-all,+{usable[0]}"
    identity = (f"--reuid={uid}", f"--regid={gid}", "--clear-groups")
    capability_flags = tuple(
        f"--{name}={change}" for name in ("inh-caps", "ambient-caps", "bounding-set")
    )
    # Without this bit access(2), by which initdb looks for its siblings, ignores capabilities.
    # The next exec drops what this bit would still permit.
    return (setpriv, *identity, *capability_flags, "--securebits=+no_setuid_fixup")


def permitted_capabilities() -> int:
    """The capabilities this process may use, as a bit set; empty if the system has none."""
    if not is_linux():
        return 0
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapPrm:")), 0)


def _no_access_error(data: Path, reason: str) -> Misconfigured:
    return Misconfigured(
        "REVERIE_HOME",
        f"Postgres does not run as root and cannot use {data}: {reason}. Run as a normal user, "
        "or set REVERIE_HOME to a folder that every user can walk to, such as /var/lib/reverie",
    )
