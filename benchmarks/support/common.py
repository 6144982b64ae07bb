"""Command-line options, tables, percentiles and a running Reverie for the benchmarks."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from rich.console import Console
from rich.table import Table

from reverie.testing import servers
from reverie.testing.models import model_home
from tests.support.stack import Stack, eventually

SERVICES = ("recall", "ingest", "dream", "staleness")
STOP_SECONDS = 20.0


@dataclass(frozen=True)
class CallTimes:
    """How long each call took, in seconds, and how long all of them took together."""

    each: Sequence[float]
    whole: float

    @property
    def rate(self) -> float:
        """Calls a second."""
        return len(self.each) / self.whole

    def at(self, share: float) -> float:
        """A percentile by nearest rank, in milliseconds."""
        ordered = sorted(self.each)
        return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] * 1000


def parser(doc: str | None) -> argparse.ArgumentParser:
    """What a measurement is asked with: `--help` prints `doc` as it stands."""
    raw = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=doc, formatter_class=raw)


@contextmanager
def open_quiet_run() -> Iterator[servers.TestRun]:
    """A run of servers whose clients log warnings only."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with servers.open_run() as run:
        yield run


async def load(clients: int, count: int, call: Callable[[int], Awaitable[object]]) -> CallTimes:
    """Makes `count` calls, `clients` at a time, as fast as they are answered."""
    numbers = iter(range(count))
    each: list[float] = []

    async def client() -> None:
        for number in numbers:
            begun = time.perf_counter()
            await call(number)
            each.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return CallTimes(each, time.perf_counter() - begun)


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints a table; the first column is text, the others are figures."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 3, 0, 0))
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(str, row))
    console = Console(width=110, highlight=False)
    console.print()
    console.print(table)


@dataclass(frozen=True)
class Running:
    """A `reverie up` of a home of its own, in processes of its own."""

    home: Path
    urls: dict[str, str]
    key: str

    @property
    def gateway(self) -> str:
        """The address of recall."""
        return self.urls["recall"]


@contextmanager
def running(kept: Path | None = None) -> Iterator[Running]:
    """Brings everything up on free ports, and takes it down again; `kept` is a home that stays."""
    home = kept or Path(tempfile.mkdtemp(prefix="reverie-bench-"))
    home.mkdir(exist_ok=True)
    home.chmod(0o711)
    try:
        with _child(home) as child:
            assert child.stdout is not None
            facts = json.loads(_document(child.stdout))
            yield Running(home, facts["services"], Path(facts["key_file"]).read_text().strip())
    finally:
        if not kept:
            shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _child(home: Path) -> Iterator[subprocess.Popen[str]]:
    ports = [f"{name}_port=0" for name in (*SERVICES, "grpc", "postgres", "nats")]
    sets = [f"--set={one}" for one in (*ports, f"embedding_model_dir={model_home() / 'models'}")]
    command = [
        sys.executable,
        "-m",
        "reverie.cli.app.main",
        "up",
        "--json",
        f"--home={home}",
        *sets,
    ]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("REVERIE_")}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean)
    try:
        yield child
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(STOP_SECONDS)


def _document(lines: Any) -> str:
    """The first JSON document of a stream: it ends with a closing brace at the margin."""
    read = []
    for line in lines:
        read.append(line)
        if line.rstrip() == "}":
            return "".join(read)
    raise SystemExit("reverie up ended before it was ready")


async def wait_until_enriched(stack: Stack, seconds: float) -> None:
    """Waits until the slow path has reached every memory: both arms see all of them."""

    async def is_enriched() -> bool:
        async with stack.http.get(stack.urls["ingest"] + "/metrics") as answer:
            lines = (await answer.text()).splitlines()
        behind = [line for line in lines if line.startswith("reverie_memories_unenriched")]
        return behind != [] and float(behind[0].split()[-1]) == 0

    await eventually(is_enriched, seconds, pause=0.5)
