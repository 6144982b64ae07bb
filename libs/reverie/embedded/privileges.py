"""As whom Postgres runs.

It refuses to run as root. Root therefore hands it to `nobody`. Where `nobody` cannot walk
to the data because a folder above it is closed (`/root` usually is), the child keeps just
the capability to pass through folders; no folder is opened up and no data goes elsewhere.
"""

from __future__ import annotations

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reverie.domain.errors import Misconfigured

READ_SEARCH = ("dac_read_search", 2)
OVERRIDE = ("dac_override", 1)
SETPCAP = 8
CAPABILITIES = (READ_SEARCH, OVERRIDE)
"""Name and bit of the capabilities that pass closed folders, the smaller power first."""


@dataclass(frozen=True)
class RunAs:
    """How to start a child: as whom, and through which command in front."""

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

    def give(self, path: Path) -> None:
        """Make the child the owner of a file or folder."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


def run_as(data: Path) -> RunAs:
    """As whom to run a server whose data lies at `data`.

    Raises `Misconfigured` for root where no other user can reach the data.
    """
    if os.geteuid() != 0:
        return RunAs()
    uid, gid = _owner(data)
    if reachable(data.parent, uid, gid):
        return RunAs(uid, gid)
    return RunAs(uid, gid, _with_capability(data, uid, gid))


def reachable(folder: Path, uid: int, gid: int) -> bool:
    """Whether that user can walk from the root folder into `folder`, by the modes alone."""
    return all(_enters(f.stat(), uid, gid) for f in (folder, *folder.parents))


def may_run(binary: Path, uid: int, gid: int) -> bool:
    """Whether that user may execute the file once it is reached, by its mode alone."""
    return _enters(binary.stat(), uid, gid)


def _enters(s: os.stat_result, uid: int, gid: int) -> bool:
    if s.st_uid == uid:
        return bool(s.st_mode & 0o100)
    return bool(s.st_mode & (0o010 if s.st_gid == gid else 0o001))


def _owner(data: Path) -> tuple[int, int]:
    # Data that a normal user made first stays that user's: Postgres insists on owning it.
    if data.exists() and (s := data.stat()).st_uid != 0:
        return s.st_uid, s.st_gid
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise _stuck(data, "there is no user `nobody` to run Postgres as") from None
    return nobody.pw_uid, nobody.pw_gid


def _with_capability(data: Path, uid: int, gid: int) -> tuple[str, ...]:
    held, setpriv = permitted(), shutil.which("setpriv")
    usable = [name for name, bit in CAPABILITIES if held >> bit & 1 and held >> SETPCAP & 1]
    if not usable or setpriv is None:
        missing = "`setpriv` is not installed" if usable else "no capability to pass it is held"
        raise _stuck(data, f"a folder above it is closed to other users and {missing}")
    keep = f"-all,+{usable[0]}"
    who = (f"--reuid={uid}", f"--regid={gid}", "--clear-groups")
    sets = tuple(f"--{name}={keep}" for name in ("inh-caps", "ambient-caps", "bounding-set"))
    # Without this bit access(2), by which initdb looks for its siblings, ignores capabilities.
    # What the bit would leave permitted is gone with the next exec.
    return (setpriv, *who, *sets, "--securebits=+no_setuid_fixup")


def permitted() -> int:
    """The capabilities this process may use, as a bit set; none where there are no such."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapPrm:")), 0)


def _stuck(data: Path, why: str) -> Misconfigured:
    return Misconfigured(
        "REVERIE_HOME",
        f"Postgres does not run as root and cannot use {data}: {why}. Run as a normal user, "
        "or set REVERIE_HOME to a folder that every user can walk to, such as /var/lib/reverie",
    )
