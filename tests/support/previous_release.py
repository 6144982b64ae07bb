"""The sources of the previous release, and data for it to write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEY = "rv_an-upgraded-key-of-an-older-release"
MEMORIES = {
    "decision": "Herons nest at the mill because the weir was opened in 1871.",
    "lesson": "The ferry bell cracks in frost, so it is rung with a wooden mallet.",
}
"""Memories of the older release, by their kind."""
TURNS = ("Remember: the lock keeper always counts the barges twice before noon.",
        "Understood: barges are counted twice before noon in src/locks/count.py.")  # fmt: skip
"""Turns of a session that the older release did not digest."""


def previous_release(folder: Path) -> Path:
    """The sources of the last release before this one; of this one as long as there is none."""
    tag = _git("describe", "--tags", "--match", "v[0-9]*", "--abbrev=0", "HEAD^")
    if not tag:
        return ROOT
    packed = subprocess.run(
        ["git", "archive", tag, "libs", "services"], cwd=ROOT, capture_output=True, check=True
    )
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
    return folder


def _git(*arguments: str) -> str:
    """What git says here; empty where it knows nothing of it, or there is none."""
    if shutil.which("git") is None:
        return ""
    told = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return told.stdout.strip() if told.returncode == 0 else ""


def migrate_by(source: Path, home: Path, url: str, nats_url: str) -> None:
    """`reverie migrate` of another release: the schema, and the streams."""
    subprocess.run(
        [sys.executable, "-m", "reverie.cli.app.main", "migrate"],
        env={
            "PATH": os.defpath, "HOME": str(home), "PYTHONPATH": path_of(source),
            "REVERIE_DATABASE_MIGRATION_URL": url, "REVERIE_HOME": str(home / "home"),
            "REVERIE_NATS_URL": nats_url,
        },
        check=True,
        capture_output=True,
    )  # fmt: skip


def path_of(source: Path) -> str:
    """Where a process finds the modules of a release."""
    return os.pathsep.join([str(source / "libs"), str(source / "services")])
