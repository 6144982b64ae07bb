"""The API reference page in a real browser, where one is installed."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from tests.interfaces.openapi_examples import REQUEST_EXAMPLES
from tests.support.stack import Stack

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000")
BLOCKED = re.compile(rb"\"Loading the \w+ '([^']+)' violates the following Content Security Policy")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
async def test_a_browser_renders_every_call_and_loads_nothing_from_elsewhere(
    stack: Stack, tmp_path: Path
) -> None:
    assert BROWSER is not None
    browser = await asyncio.create_subprocess_exec(
        BROWSER, *FLAGS, f"--user-data-dir={tmp_path}", "--dump-dom",
        "--enable-logging=stderr", "--v=0", f"{stack.url}/docs",
        stdout=PIPE, stderr=PIPE, env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    async with asyncio.timeout(60):
        page, log = await browser.communicate()
    # Redoc shows its own logo, which the page's policy does not let it load.
    assert set(BLOCKED.findall(log)) == {b"https://cdn.redoc.ly/redoc/logo-mini.svg"}
    assert log.count(b"Content Security Policy") == 1
    assert [name for name in REQUEST_EXAMPLES if name.split(" ", 1)[1] not in page.decode()] == []
