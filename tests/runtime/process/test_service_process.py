"""Start, signals, shutdown and output of a service process."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.runtime.sample_service import KEY, SECRET

ROOT = Path(__file__).parents[3]
HEADERS = {"Authorization": f"Bearer {KEY}"}
GOOD = {"text": "hello"}


class Child:
    """The sample service as a child process, with what it logged so far."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.logged: list[dict[str, Any]] = []

    async def event(self, name: str) -> dict[str, Any]:
        """The next log line of this event."""
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            entry: dict[str, Any] = json.loads(line)
            self.logged.append(entry)
            if entry["event"] == name:
                return entry
        raise AssertionError(f"ended without {name}: {self.logged}")

    async def url(self) -> str:
        return str((await self.event("listening"))["url"])

    async def said(self, text: str) -> None:
        """Waits until it has printed this line."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            if line.decode().strip() == text:
                return
        raise AssertionError(f"ended without saying {text!r}")

    async def ended(self) -> tuple[int, str]:
        """Exit code and the rest of what it printed."""
        out, err = await self.process.communicate()
        self.logged += [json.loads(line) for line in err.splitlines()]
        assert self.process.returncode is not None
        return self.process.returncode, out.decode()


@pytest.fixture
def environ(reverie_home: Path) -> dict[str, str]:
    """The environment of the children: a home of their own, a free port, JSON lines."""
    return {
        "PATH": "/usr/bin:/bin",
        "REVERIE_HOME": str(reverie_home),
        "REVERIE_INGEST_PORT": "0",
        "REVERIE_LOG_FORMAT": "json",
        "REVERIE_LOG_LEVEL": "debug",
    }


@asynccontextmanager
async def child(environ: dict[str, str], stdin: int | None = None) -> AsyncIterator[Child]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.runtime.sample_service",
        cwd=ROOT,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL if stdin is None else stdin,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield Child(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_signal_lets_requests_in_flight_and_work_after_replies_finish(
    environ: dict[str, str],
) -> None:
    async with child(environ) as service, aiohttp.ClientSession(headers=HEADERS) as http:
        url = await service.url()
        assert await _post(http, f"{url}/v1/later") == 200
        reply = asyncio.create_task(_post(http, f"{url}/v1/held"))
        await service.said("entered")
        service.process.send_signal(signal.SIGTERM)
        await service.event("stopping")
        await _refused(url)
        assert not reply.done()
        service.process.send_signal(signal.SIGUSR1)
        assert await reply == 200
        code, out = await service.ended()
    assert (code, out) == (0, "closed with 1 notes and 1 done\n")
    assert [entry["event"] for entry in service.logged][-1] == "stopped"


async def test_a_request_that_does_not_end_cannot_block_the_shutdown(
    environ: dict[str, str],
) -> None:
    environ["REVERIE_SHUTDOWN_TIMEOUT"] = "0.2"
    async with child(environ) as service, aiohttp.ClientSession(headers=HEADERS) as http:
        url = await service.url()
        reply = asyncio.create_task(_post(http, f"{url}/v1/held"))
        await service.said("entered")
        service.process.send_signal(signal.SIGINT)
        code, out = await service.ended()
        with pytest.raises(aiohttp.ClientError):
            await reply
    assert (code, out) == (0, "closed with 0 notes and 0 done\n")


async def test_closing_the_lifeline_ends_the_process(environ: dict[str, str]) -> None:
    environ["REVERIE_LIFELINE"] = "1"
    async with child(environ, PIPE) as service:
        await service.url()
        assert service.process.stdin is not None
        service.process.stdin.close()
        assert (await service.event("stopping"))["cause"] == "lifeline"
        code, _ = await service.ended()
    assert code == 0


async def test_a_taken_port_is_reported_in_one_line(environ: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        async with child({**environ, "REVERIE_INGEST_PORT": port}) as service:
            code, out = await service.ended()
    failed = service.logged[-1]
    assert code == 78
    assert failed["event"] == "start_failed"
    assert f"port {port} on 127.0.0.1 is taken" in failed["reason"]
    assert "REVERIE_INGEST_PORT" in failed["reason"]
    assert "exception" not in failed
    assert out == "opened\nclosed with 0 notes and 0 done\n"


async def test_a_failure_is_found_by_its_trace_in_logs_and_spans_and_they_hold_no_secret(
    environ: dict[str, str], reverie_home: Path
) -> None:
    """Its standard input has ended, and the collector is away: neither stops the process."""
    file = reverie_home / "spans" / "spans.jsonl"
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        environ["REVERIE_OTLP_ENDPOINT"] = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        environ["REVERIE_SPANS_FILE"] = str(file)
        async with child(environ) as service, aiohttp.ClientSession(headers=HEADERS) as http:
            url = await service.url()
            async with http.get(f"{url}/v1/broken") as response:
                trace_id = (await response.json())["trace_id"]
            assert response.headers["X-Trace-Id"] == trace_id
            assert await _get(http, f"{url}/v1/notes?tag={SECRET}") == 200
            service.process.terminate()
            code, _ = await service.ended()
    assert code == 0
    text = json.dumps(service.logged) + file.read_text()
    assert SECRET not in text
    assert KEY not in text
    failed = next(entry for entry in service.logged if entry["event"] == "request_failed")
    assert failed["trace_id"] == trace_id
    assert (failed["tenant"], failed["service"]) == ("tenant-1", "ingest")
    assert "RuntimeError" in failed["exception"]
    spans = [json.loads(line) for line in file.read_text().splitlines()]
    (span,) = [one for one in spans if one["trace_id"] == trace_id]
    assert (span["name"], span["service"], span["kind"]) == ("GET /v1/broken", "ingest", "server")
    assert (span["status"], span["parent_id"]) == ("error", None)
    assert span["attributes"]["http.response.status_code"] == 500
    assert span["start"] < span["end"]


async def _post(http: aiohttp.ClientSession, url: str) -> int:
    async with http.post(url, json=GOOD) as response:
        await response.read()
        return response.status


async def _get(http: aiohttp.ClientSession, url: str) -> int:
    async with http.get(url) as response:
        await response.read()
        return response.status


async def _refused(url: str) -> None:
    """Waits until nobody accepts at this address any more."""
    async with aiohttp.ClientSession() as stranger:
        while True:
            try:
                await _get(stranger, f"{url}/health")
            except aiohttp.ClientConnectorError:
                return
            except aiohttp.ClientError:
                continue
