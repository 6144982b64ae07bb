"""Plays the sample day against a gateway, and reports where it stopped."""

from __future__ import annotations

import time
from pathlib import Path

import aiohttp
from rich.console import Console

from reverie.cli.demo.gateway import SampleDayError, SampleDayGateway
from reverie.cli.demo.scenes import (
    announce_commits,
    ask_empty_project,
    choose_project,
    digest_conversations,
    recall_digested,
    recall_notes,
    remember_notes,
    show_trace,
)
from reverie.cli.demo.story import read_story
from reverie.contracts.tls import create_tls_context

TIMEOUT = aiohttp.ClientTimeout(total=30)


async def play_sample_day(
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
    connector = aiohttp.TCPConnector(ssl=create_tls_context(ca))
    async with aiohttp.ClientSession(
        gateway_url, headers=headers, timeout=TIMEOUT, connector=connector
    ) as http:
        try:
            await _play_scenes(SampleDayGateway(http), spans_file_folder, console)
        except SampleDayError as error:
            console.print()
            console.print("[bold red]The sample day stopped here.[/] ", end="")
            console.print(str(error), markup=False, highlight=False)
            return False
    console.print()
    console.print(f"[bold green]That was the day[/], in {time.perf_counter() - start:.1f} s.")
    return True


async def _play_scenes(
    gateway: SampleDayGateway, spans_folder: Path | None, console: Console
) -> None:
    day = await choose_project(gateway, read_story(), console)
    await ask_empty_project(day)
    await remember_notes(day)
    await recall_notes(day)
    await digest_conversations(day)
    await recall_digested(day)
    await announce_commits(day)
    await show_trace(day, spans_folder)
