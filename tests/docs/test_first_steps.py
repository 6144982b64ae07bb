"""The demo, and the blocks of the README, pasted into a shell as one block."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from reverie.cli.demo.scenes import open_project
from reverie.cli.demo.story import read_story
from reverie.client import AsyncReverie
from reverie.testing.models import model_home
from reverie.testing.servers import TestRun
from tests.docs.shell_blocks import (
    check_first_steps,
    first_steps,
    greeting_example,
    keep_running,
    paste,
    read_gateway,
)
from tests.support.reverie_up import ANY_PORT

pytestmark = pytest.mark.timeout(300)
START_SECONDS = 150


@dataclass(frozen=True)
class Newcomer:
    """A started Reverie, seen from the folder of a clone.

    `demo`, `greeting`: what `reverie demo` and then `reverie demo chat` printed. `made`: what
    lay in HOME after the demo.
    """

    clone: Path
    environment: Mapping[str, str]
    demo: str
    made: set[str]
    greeting: str

    @property
    def store(self) -> Path:
        """The home folder of the sample."""
        return Path(self.environment["HOME"]) / ".reverie-demo"


@pytest.fixture(scope="module")
def newcomer(test_run: TestRun) -> Iterator[Newcomer]:
    """The sample day was played in this store, so that much is found that was not asked for."""
    folder = test_run.new_folder("newcomer")
    programs, home = folder / "clone" / ".venv" / "bin", folder / "home"
    programs.mkdir(parents=True)
    home.mkdir()
    path = ":".join(path for path in sys.path if path)
    runs = f"exec env PYTHONPATH='{path}' {sys.executable} -P -m reverie.cli.app.main"
    (programs / "reverie").write_text(f'#!/bin/sh\n{runs} "$@"\n')
    (programs / "reverie").chmod(0o755)
    environment = {"PATH": os.defpath, "HOME": str(home), "COLUMNS": "200"}
    reverie, ports = programs / "reverie", " ".join(ANY_PORT)
    # Most of a start is to load models, which no answer of the sample day needs.
    without = f"--set embedding_model_dir={folder} --set model_download=false"
    first = subprocess.run(
        shlex.split(f"{reverie} demo {ports} {without} --set recall_sparse=off --once"),
        capture_output=True,
        text=True,
        cwd="/",
        env=environment,
        check=False,
        timeout=START_SECONDS,
    )
    assert first.returncode == 0, first.stdout[-2000:] + first.stderr
    made = {one.name for one in home.iterdir()}
    # Commands without --home look there.
    (home / ".reverie").symlink_to(".reverie-demo")
    # It stays up, as `reverie up` does.
    models = model_home() / "models"
    command = f"{reverie} demo chat {ports} --set engine_port=0 --set embedding_model_dir={models}"
    with keep_running(command, "delete the folder", folder, environment, START_SECONDS) as printed:
        yield Newcomer(folder / "clone", environment, first.stdout, made, printed)


def test_the_demo_keeps_to_a_home_of_its_own(newcomer: Newcomer) -> None:
    assert newcomer.made == {newcomer.store.name}
    assert "The sample day is complete" in newcomer.demo
    assert "rm -r ~/.reverie-demo" in newcomer.demo
    assert "Its project is tidewater-demo." in newcomer.demo
    assert "played before is removed" not in newcomer.demo


def test_the_chat_uses_on_the_second_day_what_the_first_one_decided(newcomer: Newcomer) -> None:
    first, second = newcomer.greeting.split("The second day")
    assert "fowler: Decided. Prices are kept as whole cents" in first
    assert "beck: One test: 0.10 + 0.20 is 30 cents, exactly." in first
    assert "torvalds: Good." in first
    assert "beck: I compute it in whole cents, as we decided" in second
    assert "What the first day decided was used on the second." in second


def test_the_first_steps_answer_as_written(newcomer: Newcomer) -> None:
    commands = first_steps(newcomer.greeting)
    check_first_steps(paste("bash", commands, newcomer.clone, newcomer.environment))


def test_the_example_of_the_greeting_finds_itself_first(newcomer: Newcomer) -> None:
    """In the other shell, where there is one; `make newcomer` does everything in both."""
    example, shell = greeting_example(newcomer.greeting), "zsh" if shutil.which("zsh") else "bash"
    printed = paste(shell, example, newcomer.clone, newcomer.environment)
    recalled = printed.split('"memories"')[1]
    assert "behind the buoy" in recalled[:400], recalled


async def test_a_demo_removes_what_was_played_before(newcomer: Newcomer) -> None:
    key = (newcomer.store / "secrets" / "api_key").read_text().strip()
    console, story = Console(file=StringIO(), width=80), read_story()
    async with AsyncReverie(read_gateway(newcomer.greeting), key) as client:
        assert [memory async for memory in client.list_memories(scope=f"project/{story.project}")]
        await open_project(client, story, console)
        assert not [
            memory async for memory in client.list_memories(scope=f"project/{story.project}")
        ]
    assert isinstance(console.file, StringIO)
    assert "played before is removed" in console.file.getvalue()
