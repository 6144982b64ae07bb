"""A command of `reverie` in the process of the test, where the process is not what is tested."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from typer.testing import CliRunner

from reverie.cli.common import exit_code
from reverie.cli.main import app
from reverie.domain.errors import ReverieError


async def command(env: Mapping[str, str], *words: str, given: str = "") -> tuple[int, str, str]:
    """Its exit code, and what it wrote to standard output and standard error.

    `env` comes on top of the environment, and `given` by standard input.
    """
    done = await asyncio.to_thread(CliRunner().invoke, app, [*words], input=given, env=env)
    if isinstance(done.exception, ReverieError):
        return exit_code(done.exception), done.stdout, f"{done.stderr}{done.exception}\n"
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr
