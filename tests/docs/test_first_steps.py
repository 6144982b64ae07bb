"""The blocks of the README answer as written, pasted into bash and zsh as one block."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from reverie.testing.models import model_home
from reverie.testing.servers import TestRun
from tests.docs.shell_blocks import (
    SHELLS,
    check_first_steps,
    first_steps,
    greeting_example,
    keep_running,
    paste,
)
from tests.support.reverie_up import ANY_PORT

START_SECONDS = 90


@dataclass(frozen=True)
class Newcomer:
    """A started Reverie, seen from the folder of a clone."""

    clone: Path
    environment: Mapping[str, str]
    greeting: str


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    return name


@pytest.fixture(scope="module")
def newcomer(test_run: TestRun) -> Iterator[Newcomer]:
    """The sample day was played in this store, so that much is found that was not asked for."""
    folder = test_run.new_folder("newcomer")
    programs = folder / "clone" / ".venv" / "bin"
    programs.mkdir(parents=True)
    path = ":".join(path for path in sys.path if path)
    runs = f"exec env PYTHONPATH='{path}' {sys.executable} -P -m reverie.cli.app.main"
    (programs / "reverie").write_text(f'#!/bin/sh\n{runs} "$@"\n')
    (programs / "reverie").chmod(0o755)
    environment = {"PATH": os.defpath, "HOME": str(folder), "COLUMNS": "200"}
    models = f"--set embedding_model_dir={model_home() / 'models'}"
    flags = " ".join(ANY_PORT)
    command = f"{programs / 'reverie'} demo --home {folder / '.reverie'} {models} {flags}"
    with keep_running(command, "rm -r ", folder, environment, START_SECONDS) as printed:
        yield Newcomer(folder / "clone", environment, printed)


def test_the_first_steps_answer_as_written(newcomer: Newcomer, shell: str) -> None:
    commands = first_steps(newcomer.greeting)
    check_first_steps(paste(shell, commands, newcomer.clone, newcomer.environment))


def test_the_example_of_the_greeting_finds_itself_first(newcomer: Newcomer, shell: str) -> None:
    example = greeting_example(newcomer.greeting)
    printed = paste(shell, example, newcomer.clone, newcomer.environment)
    recalled = printed.split('"memories"')[1]
    assert "behind the buoy" in recalled[:400], recalled
