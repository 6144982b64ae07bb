"""The API reference page in a real browser, where one is installed."""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from reverie.contracts.openapi_examples import REQUEST_EXAMPLES
from tests.support.fixtures import stack as stack
from tests.support.stack import Stack

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,1400")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
async def test_a_browser_shows_the_page_styled_and_reaches_nothing_else(
    stack: Stack, tmp_path: Path
) -> None:
    assert BROWSER is not None
    picture = tmp_path / "page.png"
    browser = await asyncio.create_subprocess_exec(
        BROWSER, *FLAGS, f"--user-data-dir={tmp_path}", f"--screenshot={picture}",
        "--enable-logging=stderr", "--v=0", f"{stack.url}/docs",
        stdout=PIPE, stderr=PIPE, env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    async with asyncio.timeout(60):
        _, said = await browser.communicate()
    assert b"Content Security Policy" not in said
    assert b"Refused to" not in said
    assert picture.stat().st_size > 50_000
    async with stack.http.get(f"{stack.url}/docs") as answer:
        page = await answer.text()
    assert all(name.split(" ", 1)[1] in page for name in REQUEST_EXAMPLES)
