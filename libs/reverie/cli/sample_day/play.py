"""Plays the sample day against a gateway and says what happened, or what did not."""

from __future__ import annotations

import time
from pathlib import Path

import aiohttp
from rich.console import Console

from reverie.cli.sample_day.door import Door, Unshown
from reverie.cli.sample_day.scenes import (
    after_the_dream,
    before_anything,
    commits_arrive,
    conversations_and_dream,
    found_at_once,
    opening,
    remembering,
    the_trace,
)
from reverie.cli.sample_day.story import read_story
from reverie.contracts.trust import trusting

TIMEOUT = aiohttp.ClientTimeout(total=30)


async def play(
    gateway_url: str,
    api_key: str,
    spans_file_folder: Path | None,
    console: Console,
    ca: Path | None = None,
) -> bool:
    """Plays the day through the gateway alone; True if every step showed what it should.

    Each playing takes a project name of its own, so the day can be played again and again.
    Without a folder of spans the last step, the trace, is left out and said to be.
    """
    start = time.perf_counter()
    headers = {"Authorization": f"Bearer {api_key}"}
    connector = aiohttp.TCPConnector(ssl=trusting(ca))
    async with aiohttp.ClientSession(
        gateway_url, headers=headers, timeout=TIMEOUT, connector=connector
    ) as http:
        try:
            await _scenes(Door(http), spans_file_folder, console)
        except Unshown as missed:
            console.print()
            console.print("[bold red]The sample day stopped here.[/] ", end="")
            console.print(str(missed), markup=False, highlight=False)
            return False
    console.print()
    console.print(f"[bold green]That was the day[/], in {time.perf_counter() - start:.1f} s.")
    return True


async def _scenes(door: Door, spans_folder: Path | None, console: Console) -> None:
    day = await opening(door, read_story(), console)
    await before_anything(day)
    await remembering(day)
    await found_at_once(day)
    await conversations_and_dream(day)
    await after_the_dream(day)
    await commits_arrive(day)
    await the_trace(day, spans_folder)
