"""Starts services as processes that a test can kill."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp

from reverie.bus.streams import CONSUMERS, ensure_streams
from reverie.domain.access.principals import KeyRole
from reverie.store.platform.api_keys import NewApiKey, create_key
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import eventually

ACK_WAIT = 2.0
"""Seconds after which NATS gives a killed worker's message to another; 30 in earnest."""


@dataclass(frozen=True)
class KillableService:
    """A running `reverie serve NAME`."""

    child: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """The process id."""
        return self.child.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; else its exit code."""
        return self.child.poll()

    def kill(self) -> None:
        """kill -9."""
        self.child.kill()

    def terminate(self) -> None:
        """Tells it to stop."""
        self.child.terminate()

    async def wait(self) -> int:
        """Waits for its end; its exit code."""
        return await asyncio.to_thread(self.child.wait)


@dataclass(frozen=True)
class ServiceStarter:
    """Starts service processes; `running` are those that it has not killed."""

    running: dict[int, KillableService] = field(default_factory=dict)

    def start(self, service: str, environment: Mapping[str, str], log: Path) -> KillableService:
        """A service in this environment and no other."""
        command = [sys.executable, "-P", "-m", "reverie.cli.app.main", "serve", service]
        with log.open("ab") as err:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
                env=dict(environment),
            )
        started = self.running[child.pid] = KillableService(child)
        return started

    def kill(self, pid: int) -> None:
        """kill -9."""
        process = self.running.pop(pid, None)
        if process is not None:
            process.kill()
            process.child.wait()


@contextmanager
def service_starter() -> Iterator[ServiceStarter]:
    """At the end every process of it is killed."""
    starter = ServiceStarter()
    try:
        yield starter
    finally:
        for pid in list(starter.running):
            starter.kill(pid)


@dataclass(frozen=True)
class World:
    """What the processes share: servers, a key, a folder for their logs."""

    database: DatabaseUrls
    nats_url: str
    key: str
    folder: Path
    http: aiohttp.ClientSession
    starter: ServiceStarter

    async def post(self, url: str, json: Any, **headers: str) -> Any:
        """The body of a POST that must succeed."""
        auth = {"Authorization": f"Bearer {self.key}", **headers}
        async with self.http.post(url, json=json, headers=auth) as answer:
            body = await answer.json(content_type=None)
            assert answer.status < 300, body
            return body

    async def get(self, url: str) -> Any:
        """The body of a GET that must succeed."""
        async with self.http.get(url, headers={"Authorization": f"Bearer {self.key}"}) as answer:
            body = await answer.json(content_type=None)
            assert answer.status < 300, body
            return body


async def quick_streams(nats_url: str) -> None:
    """Streams whose consumers give up on a dead worker soon."""
    await ensure_streams(nats_url, consumers=[replace(one, ack_wait=ACK_WAIT) for one in CONSUMERS])


@asynccontextmanager
async def open_world(
    database: DatabaseUrls, nats_url: str, folder: Path, starter: ServiceStarter
) -> AsyncIterator[World]:
    """Streams whose consumers give up on a dead worker soon, and a key."""
    await quick_streams(nats_url)
    key = create_key(database.admin_url, NewApiKey("chaos", KeyRole.ADMIN))
    async with aiohttp.ClientSession() as http:
        yield World(database, nats_url, key, folder, http, starter)


@dataclass(frozen=True)
class Served:
    """A running service: where it listens, and what it logged."""

    url: str
    process: KillableService
    log: Path

    async def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        await self.process.wait()

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The log lines of this event so far."""
        return _logged(self.log, event)


def _logged(log: Path, event: str) -> list[dict[str, Any]]:
    whole = [line for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [entry for entry in map(json.loads, whole) if entry["event"] == event]


@asynccontextmanager
async def served(
    world: World, name: str, env: Mapping[str, str] | None = None, **settings: object
) -> AsyncIterator[Served]:
    """`reverie serve NAME` as a process, ready; killed at the end if it still runs."""
    given = {**_environment(world, name, settings), **(env or {})}
    log = world.folder / f"{name}-{uuid4().hex[:8]}.log"
    process = world.starter.start(name, given, log)
    try:
        url = await eventually(lambda: _url(process, log), 40)
        await eventually(lambda: _ready(world, url), 40)
        yield Served(url, process, log)
    finally:
        world.starter.kill(process.pid)


def _environment(world: World, name: str, settings: Mapping[str, object]) -> dict[str, str]:
    values = {
        "home": model_home(),
        "database_url": world.database.service_url,
        "nats_url": world.nats_url,
        f"{name}_port": 0,
        "log_format": "json",
        "outbox_sweep_after": 0.5,
        **settings,
    }
    own = {f"REVERIE_{key.upper()}": str(value) for key, value in values.items()}
    path = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return {"PATH": "/usr/bin:/bin", "HOME": str(world.folder), **path, **own}


async def _url(process: KillableService, log: Path) -> str:
    lines = _logged(log, "listening")
    assert process.returncode is None, _logged(log, "start_failed")
    return str(lines[0]["url"]) if lines else ""


async def _ready(world: World, url: str) -> bool:
    async with world.http.get(url + "/ready") as answer:
        return answer.status == 200
