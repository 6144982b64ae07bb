"""Measures the memory of the services while many clients upload what nobody should read.

`python -m chaos.hostile_uploads [--clients 200] [--seconds 20]` starts `reverie up` on a new home
folder. For each kind of upload it opens that many connections at once, to the gateway or to ingest,
and keeps them open. It prints the answers by status, and the memory (RSS) of the process with the
gateway and ingest: before, at its peak, and after. It ends with 1 if a call was accepted.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import psutil  # type: ignore[import-untyped, unused-ignore]

from tests.support.reverie_up import ANY_PORT, Up

BOMB = gzip.compress(bytes(200_000_000), 9)
"""200 MB of zeros in 200 KB."""
SLOW_CHUNK = b"x" * 16_384
PAUSE = 0.2
SETTLE_SECONDS = 3.0
NO_KEY, WRONG_KEY = "", "Authorization: Bearer rv_wrong\r\n"
GZIP = f"Content-Encoding: gzip\r\nContent-Length: {len(BOMB)}\r\n"
SLOW = "Transfer-Encoding: chunked\r\n"
HOOK = f"X-Hub-Signature-256: sha256={'0' * 64}\r\nContent-Type: application/json\r\n"


Sender = Callable[[float], Coroutine[Any, Any, str]]


@dataclass(frozen=True)
class Upload:
    """One kind of hostile upload: where it goes, its headers, and whether its body is slow."""

    name: str
    service: str
    path: str
    headers: str
    slow: bool


UPLOADS = [
    Upload(f"{body}, {key}", service, path, headers + framing, slow)
    for service, path in (("recall", "/v1/remember"), ("ingest", "/v1/import"))
    for key, headers in (("no key", NO_KEY), ("wrong key", WRONG_KEY))
    for body, framing, slow in (("gzip bomb", GZIP, False), ("slow body", SLOW, True))
] + [
    Upload("gzip bomb, forged delivery", "recall", "/v1/git/github/default/x", HOOK + GZIP, False),
    Upload("slow body, forged delivery", "recall", "/v1/git/github/default/x", HOOK + SLOW, True),
]


async def send_upload(upload: Upload, url: str, until: float) -> str:
    """Sends an upload until it is answered or the time is over; the status of the answer."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    status = asyncio.create_task(reader.readline())
    try:
        head = f"POST {upload.path} HTTP/1.1\r\nHost: localhost\r\n{upload.headers}\r\n"
        writer.write(head.encode())
        with suppress(ConnectionError):
            if not upload.slow:
                writer.write(BOMB)
                await writer.drain()
            while upload.slow and not status.done() and time.monotonic() < until:
                writer.write(b"%x\r\n%b\r\n" % (len(SLOW_CHUNK), SLOW_CHUNK))
                await writer.drain()
                await asyncio.sleep(PAUSE)
        async with asyncio.timeout(max(0.1, until - time.monotonic())):
            return (await status).decode().split(" ")[1]
    except TimeoutError:
        return "no answer"
    except (ConnectionError, IndexError):
        return "closed"
    finally:
        status.cancel()
        writer.close()


async def send_grpc(address: str, until: float) -> str:
    """A health check over gRPC whose 20 MB need no key; the status of the answer."""

    async def body() -> AsyncIterator[bytes]:
        yield bytes(20_000_000)

    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.stream_unary("/grpc.health.v1.Health/Check")
        try:
            await call(body(), timeout=max(0.1, until - time.monotonic()))
        except grpc.aio.AioRpcError as error:
            return str(error.code().name)
        except asyncio.CancelledError:
            # The server ended the stream while it was being written.
            return "CANCELLED"
    return "OK"


async def measure(
    process: psutil.Process, send: Sender, clients: int, seconds: float
) -> tuple[list[int], Counter[str]]:
    """The memory before, at its peak and after in MB, and the answers."""

    def memory() -> int:
        return int(process.memory_info().rss / 1_000_000)

    before = peak = memory()
    until = time.monotonic() + seconds
    tasks = [asyncio.create_task(send(until)) for _ in range(clients)]
    pending: set[Any] = set(tasks)
    while pending:
        _, pending = await asyncio.wait(pending, timeout=0.05)
        peak = max(peak, memory())
    await asyncio.sleep(SETTLE_SECONDS)
    return [before, peak, memory()], Counter(task.result() for task in tasks)


async def run(up: Up, addresses: dict[str, Any], clients: int, seconds: float) -> bool:
    """Prints a row for each kind of upload; whether none was accepted."""
    process = psutil.Process(up.pids()["all"])
    print("| upload | to | answers | MB before | MB at the peak | MB after |")
    print("| --- | --- | --- | --- | --- | --- |")
    services: dict[str, str] = addresses["services"]
    senders: list[tuple[str, str, Sender]] = [
        (
            upload.name,
            f"{upload.service} `{upload.path}`",
            partial(send_upload, upload, services[upload.service]),
        )
        for upload in UPLOADS
    ]
    grpc_sender = partial(send_grpc, addresses["grpc"])
    senders.append(("message of 20 MB, no key", "recall, gRPC health", grpc_sender))
    is_refused = True
    for name, target, send in senders:
        figures, answers = await measure(process, send, clients, seconds)
        counts = ", ".join(f"{count} x {status}" for status, count in sorted(answers.items()))
        print(f"| {name} | {target} | {counts} | {' | '.join(map(str, figures))} |", flush=True)
        is_refused = is_refused and not any(status.startswith("2") for status in answers)
    return is_refused


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        up = Up(Path(folder) / "home", *ANY_PORT)
        try:
            return not asyncio.run(run(up, up.ready(), options.clients, options.seconds))
        finally:
            up.clean_up()


if __name__ == "__main__":
    sys.exit(main())
