"""Finds or downloads Prometheus and promtool, and runs a server that scrapes given targets."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from reverie.embedded.ports import find_free_port
from tests.support.stack import eventually

PACKAGE = "prometheus"


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`; skips the test where it cannot be had."""
    found, why = _found(name)
    return found or pytest.skip(f"there is no {name}: {why}")


def is_there(name: str) -> bool:
    """Whether the program can be had."""
    return _found(name)[0] is not None


@cache
def _found(name: str) -> tuple[str | None, str]:
    if path := shutil.which(name):
        return path, ""
    try:
        return str(_fetched() / name), ""
    except (OSError, subprocess.SubprocessError) as error:
        return None, f"it is not in PATH, and Debian's cannot be fetched ({error})"


@cache
def _fetched() -> Path:
    """The programs of Debian's package, unpacked into a folder that other runs share.

    `REVERIE_TEST_TOOLS`, else `reverie-test-tools` in the system's folder for temporary files.
    """
    default = Path(tempfile.gettempdir()) / "reverie-test-tools"
    folder = Path(os.environ.get("REVERIE_TEST_TOOLS") or default) / PACKAGE
    folder.mkdir(parents=True, exist_ok=True)
    programs = folder / "usr" / "bin"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (programs / "promtool").exists():
            _fetch(folder)
    return programs


def _fetch(folder: Path) -> None:
    subprocess.run(["apt-get", "download", PACKAGE], cwd=folder, check=True, timeout=60)
    for package in sorted(folder.glob("*.deb")):
        subprocess.run(["dpkg", "-x", package, folder], check=True, timeout=60)
        package.unlink()


@dataclass(frozen=True)
class Prometheus:
    """A server that scrapes."""

    url: str
    http: aiohttp.ClientSession

    async def ask(self, query: str) -> list[dict[str, Any]]:
        """The vector that a query gives now."""
        async with self.http.get(f"{self.url}/api/v1/query", params={"query": query}) as answer:
            told = await answer.json()
        assert told["status"] == "success", (query, told)
        found: list[dict[str, Any]] = told["data"]["result"]
        return found

    async def exemplars(self, query: str) -> list[str]:
        """The traces that the series of a query name."""
        span = {"query": query, "start": "0", "end": "9999999999"}
        async with self.http.get(f"{self.url}/api/v1/query_exemplars", params=span) as answer:
            series = (await answer.json())["data"]
        return [one["labels"]["trace_id"] for found in series for one in found["exemplars"]]


@asynccontextmanager
async def scraping(
    folder: Path, targets: Mapping[str, str], rules: Path
) -> AsyncIterator[Prometheus]:
    """A Prometheus that scrapes `targets` (URL by job) every two seconds, with the rules loaded."""
    config = {
        "global": {"scrape_interval": "2s", "evaluation_interval": "2s"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [url.removeprefix("http://")]}]}
            for job, url in targets.items()
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = find_free_port()
    process = await asyncio.create_subprocess_exec(
        program("prometheus"),
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=exemplar-storage",
        "--log.level=warn",
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with aiohttp.ClientSession() as http:
            made = Prometheus(f"http://127.0.0.1:{port}", http)
            await eventually(lambda: _answers(made, len(targets)))
            yield made
    finally:
        process.terminate()
        await process.wait()


async def _answers(made: Prometheus, targets: int) -> bool:
    try:
        return len(await made.ask("up == 1")) == targets
    except (aiohttp.ClientError, json.JSONDecodeError):
        return False


def panels(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The panels of a dashboard that show something."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def queries(board: Mapping[str, Any], interval: str = "1m") -> list[str]:
    """What the panels of a dashboard ask."""
    asked = [target["expr"] for panel in panels(board) for target in panel["targets"]]
    return [query.replace("$__rate_interval", interval) for query in asked]
