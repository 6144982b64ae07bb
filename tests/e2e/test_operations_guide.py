"""Runs the commands of the pages for operators line by line on a fresh home folder.

Backups alone; all of them with `REVERIE_TEST_STEPS=all`, as `make newcomer` sets it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reverie.bus.nats_bus import connect
from reverie.bus.streams import INGEST_ENRICH
from reverie.cli.app.operator_access import resolve_bus_url
from reverie.runtime.settings.settings import Settings
from reverie.testing.servers import TestRun
from tests.support.commands import command
from tests.support.stack import eventually

PAGES = Path(__file__).parents[2] / "docs" / "operate"
PORTS = ("recall", "grpc", "ingest", "dream", "staleness", "postgres", "nats")
FACT = "The lighthouse keeper winds the clock on Sundays"


def commands_of(page: str, heading: str) -> list[str]:
    """The blocks of commands below a heading, up to the next heading."""
    text = (PAGES / page).read_text()
    section = re.split(rf"^##+ {re.escape(heading)}$", text, maxsplit=1, flags=re.MULTILINE)[1]
    section = re.split(r"^##+ [^\n]+$", section, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Shell:
    """One bash in which block after block is run, stopped at the first line that fails."""

    process: subprocess.Popen[str]
    home: Path
    environment: Mapping[str, str]

    def run(self, commands: str) -> str:
        """What the commands printed. A failing test where one of them fails."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        end = f"end of block {uuid.uuid4().hex}"
        self.process.stdin.write(f"{commands}\necho '{end}'\n")
        self.process.stdin.flush()
        said: list[str] = []
        for line in self.process.stdout:
            if line.strip() == end:
                return "".join(said)
            said.append(line)
        raise AssertionError(f"{commands}\nended with:\n{''.join(said)}")

    def said(self, *words: str, given: str = "") -> str:
        """What a command of the test's own printed, which is no line of the guide."""
        code, said, wrong = asyncio.run(command(self.environment, *words, given=given))
        assert code == 0, said + wrong
        return said

    def told(self, *words: str) -> Any:
        """What such a command printed as JSON."""
        return json.loads(self.said(*words, "--json"))


@contextmanager
def shell(folder: Path) -> Iterator[Shell]:
    """A bash with `reverie` in its path, and folders of its own."""
    programs = folder / "bin"
    programs.mkdir()
    reverie = programs / "reverie"
    # Not for all: the system's Python would take up the library of this one.
    path = ":".join(path for path in sys.path if path)
    runs = f"exec env PYTHONPATH='{path}' {sys.executable} -P -m reverie.cli.app.main"
    reverie.write_text(f'#!/bin/sh\n{runs} "$@"\n')
    reverie.chmod(0o755)
    environment = {
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "REVERIE_HOME": str(folder / "home"),
        # Nothing here needs a model, and to load them takes most of a start.
        "REVERIE_EMBEDDING_MODEL_DIR": str(folder / "models"),
        "REVERIE_MODEL_DOWNLOAD": "false",
        "REVERIE_RECALL_SPARSE": "off",
        "REVERIE_INGEST_ROLE": "both",
        # Every door speaks TLS, and every command trusts it by itself.
        "REVERIE_TLS_SOURCE": "self-signed",
        "BACKUPS": str(folder / "backups"),
        **{f"REVERIE_{name.upper()}_PORT": "0" for name in PORTS},
    }
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=folder,
    )
    try:
        yield Shell(process, folder / "home", environment)
    finally:
        process.kill()
        process.wait()
        subprocess.run([reverie, "down"], env=environment, capture_output=True, check=False)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


@pytest.mark.timeout(600)
def test_the_commands_of_the_operators_pages_work(test_run: TestRun) -> None:
    with shell(test_run.new_folder("operate")) as bash:
        for page, heading, check in STEPS:
            if heading == "Dead letters":
                asyncio.run(_poison(bash))
            blocks = commands_of(page, heading)
            assert blocks, f"{page} has no commands below {heading!r}"
            check(bash, "".join([bash.run(commands) for commands in blocks]))


def _start(bash: Shell, said: str) -> None:
    assert "No errors" in said
    bash.said("remember", FACT, "--scope", "project/light")
    bash.said("vault", "set", "lamp", "--scope", "project/light", given="blue-heron-42")
    _stands(bash)


def _stands(bash: Shell) -> None:
    found = bash.told("recall", "when is the clock wound", "--scope", "project/light")
    assert [one["content"] for one in found["memories"]] == [FACT]
    assert bash.said("vault", "get", "lamp", "--scope", "project/light").strip() == "blue-heron-42"


def _backed_up(bash: Shell, _: str) -> None:
    kept = bash.run('ls "$BACKUP" && cat "$BACKUP/backup.json" && wc -l < "$BACKUP.jsonl"')
    assert "reverie.dump" in kept
    assert "blue-heron-42" not in bash.run('cat "$BACKUP.jsonl" && strings "$BACKUP/reverie.dump"')
    bash.said("remember", "Written after the backup", "--scope", "project/light")


def _recovered(bash: Shell, said: str) -> None:
    assert "No errors" in said
    _stands(bash)
    [memory] = bash.told("memories", "--scope", "project/light")
    history = bash.told("history", memory["id"])
    assert history
    backup = bash.run('echo "$BACKUP"').strip()
    restore = command(bash.environment, "admin", "restore", backup, "--yes")
    code, _, error = asyncio.run(restore)
    assert (code != 0, "stop it with `reverie down` first" in error) == (True, True)


def _ended(bash: Shell, _: str) -> None:
    states = {key["label"]: key["revoked"] for key in bash.told("key", "list")}
    assert states["ci"] is not None


def _sealed(bash: Shell, _: str) -> None:
    _stands(bash)
    bash.run('test "$(cat "$REVERIE_HOME/secrets/vault_key")" = "$NEW" && test "$NEW" != "$OLD"')
    assert bash.told("vault", "rotate")["undecryptable"] == []


async def _poison(bash: Shell) -> None:
    """What no worker can read, in the stream of memories."""
    async with connect(resolve_bus_url(Settings(home=bash.home)), "poison") as bus:
        assert await bus.wait_connected(30)
        await bus.send("memory.default.remembered", b"not an event", {})

        async def buried() -> bool:
            return await bus.count_messages("DEAD") == 1 and await bus.lag(INGEST_ENRICH) == 0

        await eventually(buried)


def _replayed(_: Shell, said: str) -> None:
    assert "1 fields" in said
    assert "1 letter sent again" in said


def _upgraded(bash: Shell, said: str) -> None:
    assert "No errors" in said
    _stands(bash)


Step = tuple[str, str, Callable[[Shell, str], None]]
BACKUPS: tuple[Step, ...] = (
    ("back-up.md", "Prepare", _start),
    ("back-up.md", "Back up", _backed_up),
    ("back-up.md", "Restore", _recovered),
)
"""The page and the section of each step, and what must hold once it was followed."""
OTHERS: tuple[Step, ...] = (
    ("security.md", "Rotate a key", _ended),
    ("security.md", "Rotate the master key", _sealed),
    ("troubleshoot.md", "Dead letters", _replayed),
    ("upgrade.md", "On one machine", _upgraded),
)
STEPS = (*BACKUPS, *OTHERS) if os.environ.get("REVERIE_TEST_STEPS") == "all" else BACKUPS
