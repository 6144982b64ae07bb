"""Runs an example as a user does, against the running system of a test."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.support.stack import Stack

ROOT = Path(__file__).parents[2]


async def run_example(stack: Stack, name: str, environment: str = "") -> list[str]:
    """The lines that `examples/<name>.py` prints."""
    return await run_script(stack, f"examples/{name}.py", environment)


async def run_script(stack: Stack, path: str, environment: str = "") -> list[str]:
    """The lines that a script prints, which reads REVERIE_URL and REVERIE_API_KEY.

    `environment`: one that `make adapters` makes; where it is missing, the test is skipped.
    """
    python = ROOT / ".adapters" / environment / "bin" / "python"
    if environment and not python.exists():
        pytest.skip(f"`make adapters` installs {environment}")
    process = await asyncio.create_subprocess_exec(
        str(python) if environment else sys.executable,
        str(ROOT / path),
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "libs"),
            "REVERIE_URL": stack.url,
            "REVERIE_API_KEY": stack.key,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode().splitlines()
