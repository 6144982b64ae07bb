"""The sample day, and then the blocks of the README, pasted into a shell as one block.

`make newcomer` does it from a clean clone, with the commands that start and play.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from reverie.cli.demo.scenes import open_project, play_sample_day
from reverie.cli.demo.story import read_story
from reverie.cli.operate.up_display import UpDisplay
from reverie.client import AsyncReverie
from reverie.embedded.reporting import GATEWAY, Addresses
from tests.docs.shell_blocks import check_first_steps, first_steps, greeting_example, paste
from tests.support.reverie_up import COMMAND
from tests.support.stack import Stack

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with `reverie` where a clone has it."""
    programs = tmp_path / "clone" / ".venv" / "bin"
    programs.mkdir(parents=True)
    path = ":".join(path for path in sys.path if path)
    runs = f"exec env PYTHONPATH='{path}' {' '.join(COMMAND)}"
    (programs / "reverie").write_text(f'#!/bin/sh\n{runs} "$@"\n')
    (programs / "reverie").chmod(0o755)
    return tmp_path / "clone"


def greet(stack: Stack, home: Path) -> str:
    """What `reverie up` prints once it runs; the key lies in the home folder."""
    key_file = home / "secrets" / "api_key"
    key_file.parent.mkdir(parents=True)
    key_file.write_text(stack.key)
    printed = Console(file=StringIO(), width=200)
    services = {GATEWAY: stack.url}
    UpDisplay(printed).up(
        Addresses(home, services, "", "", api_key=stack.key, key_file=key_file, new_key=True)
    )
    return said(printed)


def said(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


async def test_the_first_steps_answer_as_written_beside_the_sample_day(
    stack: Stack, clone: Path
) -> None:
    """So much is found that was not asked for. Where there is zsh, it runs the example."""
    played, home = Console(file=StringIO(), width=80), clone.parent / "home"
    assert await play_sample_day(stack.url, stack.key, None, played, None), said(played)
    assert "Its project is tidewater-demo." in said(played)
    assert "played before is removed" not in said(played)
    environment: Mapping[str, str] = {
        "PATH": os.defpath,
        "HOME": str(home),
        "COLUMNS": "200",
        "REVERIE_GATEWAY_URL": stack.url,
    }
    greeting = greet(stack, home / ".reverie")
    shell = "zsh" if shutil.which("zsh") else "bash"
    printed = paste(shell, greeting_example(greeting), clone, environment)
    recalled = printed.split('"memories"')[1]
    assert "behind the buoy" in recalled[:400], recalled
    check_first_steps(paste("bash", first_steps(greeting), clone, environment))


async def test_the_sample_day_removes_what_was_played_before(stack: Stack) -> None:
    console, story = Console(file=StringIO(), width=80), read_story()
    scope = f"project/{story.project}"
    await stack.post("/v1/remember", {"content": "Barges wait for the tide.", "scope": scope})
    async with AsyncReverie(stack.url, stack.key) as client:
        await open_project(client, story, console)
        assert not [memory async for memory in client.list_memories(scope=scope)]
    assert "played before is removed" in said(console)
