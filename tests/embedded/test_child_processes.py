"""Child processes: their environment, their logs, and how they are restarted."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import cast

import pytest
from pydantic import SecretStr

from reverie.embedded.processes import (
    LOG_LIMIT,
    open_log,
    read_last_lines,
)
from reverie.embedded.supervision.process_watch import supervise
from reverie.embedded.supervision.service_layout import ServerUrls, build_environment
from reverie.embedded.watchdog import SupervisedProcess, watch_processes
from reverie.runtime.settings.settings import Settings


def test_a_log_is_bounded_and_its_end_can_be_read(tmp_path: Path) -> None:
    log = tmp_path / "dream.log"
    log.write_bytes(b"x" * LOG_LIMIT + b"\none\ntwo\n")
    os.close(open_log(log))
    assert log.stat().st_size == 0
    assert read_last_lines(log.with_name("dream.log.1"), 2) == "one\ntwo"


def test_services_receive_only_the_secrets_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_API_KEY", "rv_of_the_supervisor")
    settings = Settings(
        home=tmp_path, api_key=SecretStr("rv_mine"), shutdown_timeout=60, llm_provider="none"
    )
    servers = ServerUrls("postgresql://h/d", "postgresql://reads@h/d", "nats://ingest@h")
    chosen = {"ingest": 1, "dream": 2, "derive": 3, "dream-worker": 4}
    services, worker = (
        build_environment(process, settings, chosen, servers) for process in ("all", "derive")
    )
    assert "REVERIE_API_KEY" not in services
    assert services["REVERIE_SHUTDOWN_TIMEOUT"] == "3.0"
    assert services["REVERIE_LIFELINE"] == "1"
    assert services["REVERIE_DATABASE_URL"] == "postgresql://h/d"
    assert services["REVERIE_DATABASE_READONLY_URL"] == "postgresql://reads@h/d"
    assert services["REVERIE_NATS_URL"] == "nats://ingest@h"
    ports_of = [
        (env["REVERIE_INGEST_PORT"], env["REVERIE_DREAM_PORT"]) for env in (services, worker)
    ]
    assert ports_of == [("1", "2"), ("3", "4")]


class _DyingProcess:
    """A process that is found dead at each check, until it was started `lives` times."""

    name = "dying"

    def __init__(self, lives: int, all_used: asyncio.Event) -> None:
        self.starts = 0
        self._lives = lives
        self._all_used = all_used

    def start(self) -> None:
        self.starts += 1
        if self.starts == self._lives:
            self._all_used.set()

    def is_running(self) -> bool:
        return self.starts >= self._lives

    def stop(self) -> None:
        raise AssertionError("the watch stops nothing")


class _RecordedNotes:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize(
    ("stable_seconds", "pauses"), [(60.0, ["0.01", "0.02", "0.04"]), (0.0, ["0.01"] * 3)]
)
async def test_a_dead_process_is_restarted_later_each_time_unless_it_ran_for_a_while(
    monkeypatch: pytest.MonkeyPatch, stable_seconds: float, pauses: list[str]
) -> None:
    monkeypatch.setattr("reverie.embedded.watchdog.FIRST_RESTART_DELAY", 0.01)
    monkeypatch.setattr("reverie.embedded.watchdog.CHECK_SECONDS", 0.001)
    monkeypatch.setattr("reverie.embedded.watchdog.STABLE_SECONDS", stable_seconds)
    stop, notes = asyncio.Event(), _RecordedNotes()
    process = _DyingProcess(3, stop)
    await watch_processes([process], stop, notes)
    assert notes.notes == [
        f"the process dying ended; it starts again in {pause} s" for pause in pauses
    ]
    assert process.starts == 3


class _UnreadableProcess(_DyingProcess):
    """A process whose state cannot be read."""

    def is_running(self) -> bool:
        raise PermissionError


async def test_an_error_ends_all_watching_and_renews_no_certificate(tmp_path: Path) -> None:
    stop = asyncio.Event()
    process = cast("SupervisedProcess", _UnreadableProcess(1, stop))
    with pytest.raises(PermissionError):
        await supervise([process], [], (tmp_path, ["localhost"]), stop, _RecordedNotes())
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert await asyncio.to_thread(os.listdir, tmp_path) == []
