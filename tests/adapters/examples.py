"""Runs an example as a user does, against the running system of a test."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.support.stack import Stack

ROOT = Path(__file__).parents[2]


async def run_example(stack: Stack, name: str) -> list[str]:
    """The lines that `examples/adapters/<name>.py` prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / "examples" / "adapters" / f"{name}.py"),
        env={**os.environ, "REVERIE_URL": stack.url, "REVERIE_API_KEY": stack.key},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode().splitlines()
