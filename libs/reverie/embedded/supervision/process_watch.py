"""Watches all processes of a home folder until a signal, then stops them.

It imports little: it is what `reverie up` consists of for nearly all of its life.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from reverie.embedded.home import Home, delete_run_file
from reverie.embedded.reporting import NoteReporter
from reverie.embedded.supervision.service_process import ServiceProcess
from reverie.embedded.tls.setup import renew_periodically
from reverie.embedded.watchdog import SupervisedProcess, watch_processes

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Certificate = tuple[Path, Sequence[str]]
"""The folder of the machine's own certificate, and the host names in it."""


@asynccontextmanager
async def watch_stop_signals() -> AsyncIterator[asyncio.Event]:
    """An event that is set by SIGINT, SIGTERM and SIGHUP."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)


async def supervise(
    servers: Sequence[SupervisedProcess],
    services: Sequence[ServiceProcess],
    certificate: Certificate | None,
    stop: asyncio.Event,
    reporter: NoteReporter,
) -> None:
    """Starts again what ends, and renews the certificate, until `stop`, which an error sets too."""
    works = [watch_processes([*servers, *services], stop, reporter)]
    works += [renew_periodically(*certificate, stop, reporter)] if certificate else []
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        # What is stopped after an error must not be started again by the other task.
        stop.set()
        await asyncio.wait(tasks)


async def stop_all(
    servers: Sequence[SupervisedProcess], services: Sequence[ServiceProcess], home: Home
) -> None:
    """Stops services, NATS, then Postgres; one that does not end delays no other."""
    stops = [asyncio.to_thread(service.stop) for service in services]
    results = await asyncio.gather(*stops, return_exceptions=True)
    for server in reversed(servers):
        results += await asyncio.gather(asyncio.to_thread(server.stop), return_exceptions=True)
    for name in ("services", "up"):
        delete_run_file(home, name)
    for failure in results:
        if isinstance(failure, BaseException):
            raise failure
