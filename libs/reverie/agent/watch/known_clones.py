"""Stores the clones in which `reverie init` or `reverie setup` ran: only these are watched.

Each clone has a file in `clones` of the home folder.
A session does not add a clone, because a clone's author chose the project that it names.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from reverie.agent.clone_paths import replace_atomically
from reverie.domain.access.scopes import slugify

ALL_CLONES: Final = ""
"""The root of the record of agents that are set up for all projects of the person."""


@dataclass(frozen=True)
class KnownClone:
    """A clone, the project that was confirmed for it, and the agents that were set up in it.

    `agents` says since when, in seconds since 1970: what was said before is not followed.
    """

    root: str
    project: str
    agents: Mapping[str, float] = field(default_factory=dict)


def remember_clone(home: Path, root: str, project: str, agent: str | None = None) -> None:
    """Remembers a clone and its project, and an agent that was set up in it."""
    path = _record_path(home, root)
    known = _read_record(path)
    agents = dict(known.agents) if known else {}
    if agent is not None:
        agents.setdefault(agent, time.time())
    record = KnownClone(root, slugify(project) if project else "", agents)
    replace_atomically(path, json.dumps(asdict(record)).encode(), 0o600)


def forget_agent(home: Path, root: str, agent: str) -> None:
    """Forgets that an agent was set up; the clone stays known."""
    path = _record_path(home, root)
    known = _read_record(path)
    if known is not None and agent in known.agents:
        agents = {name: since for name, since in known.agents.items() if name != agent}
        record = KnownClone(root, known.project, agents)
        replace_atomically(path, json.dumps(asdict(record)).encode(), 0o600)


def list_clones(home: Path) -> list[KnownClone]:
    """The known clones that are there and belong to this user, and the record for all of them.

    A clone that was deleted or moved away is forgotten. One whose disk is missing is kept.
    """
    clones = []
    for path in sorted((home / "clones").glob("*.json")):
        clone = _read_record(path)
        if clone is None:
            continue
        if clone.root == ALL_CLONES or _is_own_folder(clone.root):
            clones.append(clone)
        elif not os.path.lexists(clone.root) and os.path.isdir(os.path.dirname(clone.root)):
            path.unlink(missing_ok=True)
    return clones


def _is_own_folder(root: str) -> bool:
    """Whether a folder is there, is no link, and belongs to who runs this."""
    try:
        state = os.lstat(root)
    except OSError:
        return False
    return os.path.isdir(root) and not os.path.islink(root) and state.st_uid == os.geteuid()


def _record_path(home: Path, root: str) -> Path:
    name = hashlib.sha256(root.encode(errors="surrogateescape")).hexdigest()[:24]
    return home / "clones" / f"{name}.json"


def _read_record(path: Path) -> KnownClone | None:
    try:
        value: Any = json.loads(path.read_text())
        agents = {str(name): float(since) for name, since in value["agents"].items()}
        return KnownClone(str(value["root"]), str(value["project"]), agents)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
