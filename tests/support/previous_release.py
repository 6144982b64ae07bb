"""The first schema with data in it, and the sources of the previous release."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from unittest.mock import patch

import psycopg
import pytest

from reverie.domain.core.ids import new_id
from reverie.store.db import migrate as store_migrate
from reverie.store.db.migrate import migrate

ROOT = Path(__file__).parents[2]
MIGRATIONS = "libs/reverie/store/migrations"
FIRST = "0001"
WHOLE = "0013"
"""The last migration of the first schema: what it holds can be told in it."""
KEY = "rv_an-upgraded-key-of-the-first-schema"
KEPT = {
    "decision": "Herons nest at the mill because the weir was opened in 1871.",
    "lesson": "The ferry bell cracks in frost, so it is rung with a wooden mallet.",
}
"""Memories of the first schema, by their kind."""
SAID = ("Remember: the lock keeper always counts the barges twice before noon.",
        "Understood: barges are counted twice before noon in src/locks/count.py.")  # fmt: skip


def previous_release(folder: Path) -> Path:
    """The sources of the release before this one: the last tag, else what stood before the newest
    migration. Skips the test, saying why, where there is no history."""
    found = _git("describe", "--tags", "--abbrev=0", "HEAD^")
    if not found:
        newest = _git("log", "--diff-filter=A", "-1", "--format=%H", "--", MIGRATIONS)
        found = _git("rev-parse", "--verify", "--quiet", f"{newest}^") if newest else ""
    if not found:
        pytest.skip("the history of the sources is not here: the previous release is not known")
    packed = subprocess.run(
        ["git", "archive", found, "libs", "services"], cwd=ROOT, capture_output=True, check=True
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


def migrate_by(source: Path, url: str, nats_url: str) -> None:
    """`reverie migrate` of another release: the schema, and the streams."""
    subprocess.run(
        [sys.executable, "-m", "reverie.cli.app.main", "migrate"],
        env={
            "PATH": os.defpath, "HOME": str(source), "PYTHONPATH": path_of(source),
            "REVERIE_DATABASE_MIGRATION_URL": url, "REVERIE_HOME": str(source / "home"),
            "REVERIE_NATS_URL": nats_url,
        },
        check=True,
        capture_output=True,
    )  # fmt: skip


def path_of(source: Path) -> str:
    """Where a process finds the modules of a release."""
    return os.pathsep.join([str(source / "libs"), str(source / "services")])


def first_schema(url: str, folder: Path) -> None:
    """The schema as it was first, from its first migration on with data in it: a key, memories, and
    a session that nobody digested."""
    migrated(url, folder / "first", FIRST)
    session = new_id()
    with psycopg.connect(url, options="-csearch_path=reverie,public") as db:
        db.execute("insert into tenant (name) values ('default')")
        db.execute(
            "insert into api_key (tenant, id, hash, label, role, reads, writes)"
            " values (1, %s, %s, 'first', 'admin', '{*}', '{*}')",
            (new_id(), hashlib.sha256(KEY.encode()).digest()),
        )
    migrated(url, folder / "whole", WHOLE)
    with psycopg.connect(url, options="-csearch_path=reverie,public") as db:
        for kind, content in KEPT.items():
            item = json.dumps(_item(kind, content))
            db.execute("select remember(1, 'default', %s, '{}')", (item,))
        db.execute(
            "insert into session (tenant, id, agent, project, scope)"
            " values (1, %s, 'ann', 'mill', 'project/mill')",
            (session,),
        )
        turns = [
            {"id": str(new_id()), "role": role, "content": said, "words": said}
            for role, said in zip(("user", "assistant"), SAID, strict=True)
        ]
        db.execute("select append_turns(1, %s, %s)", (session, json.dumps(turns)))
        db.execute("update session set ended = now() where tenant = 1")
        db.execute(
            "insert into dream_job (tenant, scope, reason) values (1, 'project/mill', 'old')"
        )


def migrated(url: str, folder: Path, last: str) -> None:
    """All migrations up to that one."""
    known = Path(str(files("reverie.store"))) / "migrations"
    (folder / "migrations").mkdir(parents=True)
    for one in sorted(known.glob("*.sql")):
        if one.name[: len(last)] <= last:
            shutil.copy(one, folder / "migrations")
    with patch.object(store_migrate, "files", lambda _: folder):
        migrate(url)


def _item(kind: str, content: str) -> dict[str, object]:
    """A memory as the first schema is told of it."""
    return {
        "id": str(new_id()), "event": str(new_id()), "scope": "project/mill", "kind": kind,
        "tier": "warm", "content": content, "words": content, "confidence": 0.8,
        "hash": hashlib.sha256(content.encode()).hexdigest(), "pinned": False,
        "source": "remember", "metadata": {}, "tags": ["mill"], "turns": [], "edges": [],
        "reads": ["*"],
    }  # fmt: skip
