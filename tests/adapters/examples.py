"""Runs an example as a user does, against the running system of a test."""

from __future__ import annotations

import asyncio
import os
import runpy
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.support.stack import Stack

ROOT = Path(__file__).parents[2]


async def run_example(stack: Stack, name: str, environment: str = "") -> list[str]:
    """The lines that `examples/<name>.py` prints."""
    return await run_script(stack, f"examples/{name}.py", environment)


async def run_script(stack: Stack, path: str, environment: str = "") -> list[str]:
    """The lines that a script prints, which reads REVERIE_URL and REVERIE_API_KEY.

    `environment`: one that `make adapters` makes; where it is missing, the test is skipped. Without
    one it runs in a thread of this process, which has imported the framework already.
    """
    where = {"REVERIE_URL": stack.url, "REVERIE_API_KEY": stack.key}
    if environment:
        return await _run_apart(path, environment, where)
    printed = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        for name, value in where.items():
            patch.setenv(name, value)
        await asyncio.to_thread(runpy.run_path, str(ROOT / path), run_name="__main__")
    return printed.getvalue().splitlines()


async def _run_apart(path: str, environment: str, where: dict[str, str]) -> list[str]:
    """What it prints in a process of an environment that `make adapters` makes."""
    python = ROOT / ".adapters" / environment / "bin" / "python"
    if not python.exists():
        pytest.skip(f"`make adapters` installs {environment}")
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(ROOT / path),
        env={**os.environ, "PYTHONPATH": str(ROOT / "libs"), **where},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode().splitlines()
