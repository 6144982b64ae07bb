"""Measures turns of the engine: 100 at once on one worker, against a model that takes 2 seconds.

The worker, the model and the other services are processes of their own. The model stamps each piece
of text with the time at which it is sent. The delay is the time until a watcher reads it as an
event: by HTTP, through the worker, NATS and the gateway. The floor is the delay to plain clients
that ask the model themselves, as many at once. Memory is the worker's own: resident (RSS) and its
share (PSS).

`--apart N` begins the turns N milliseconds apart. Together, their recalls use the processors before
the first text, and the delay shows the load of the machine.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from statistics import median, quantiles
from typing import Any

import aiohttp
import psutil  # type: ignore[import-untyped, unused-ignore]
from aiohttp import web

from benchmarks.support.common import open_quiet_run, parser, show
from reverie.client import AsyncReverie
from reverie.contracts.events import read_server_sent_events
from reverie.embedded.ports import choose_port
from reverie.runtime.settings.field_types import require_secret
from reverie.testing import servers
from reverie.testing.models import model_home
from tests.support.stack import VAULT_KEY, eventually, open_stack

TURNS = 100
SECONDS = 2.0
PIECES = 20
_CONTEXT = multiprocessing.get_context("spawn")


@dataclass
class Figures:
    """Seconds from the sending of each piece to its arrival, and of each turn."""

    delays: list[float] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Notes the pieces of a text that is there now."""
        now = time.time()
        # What is sent as one was held up for its first piece the longest.
        self.delays += [now - float(stamp) for stamp in text.split()]


def main() -> int:
    """Prints the figures."""
    asked = parser(__doc__)
    asked.add_argument("--turns", type=int, default=TURNS)
    asked.add_argument("--apart", type=float, default=0.0, help="milliseconds")
    given = asked.parse_args()
    with (
        open_quiet_run() as run,
        servers.fresh_database(run) as database,
        servers.own_nats(run) as nats,
        _child(_serve_model) as model,
        _child(_serve_others, database, nats.url, choose_port(0)) as others,
    ):
        asyncio.run(_measure(model, others, given.turns, given.apart / 1000))
    return 0


@contextmanager
def _child(serve: Callable[..., Awaitable[None]], *args: Any) -> Iterator[Any]:
    """A process of its own; what it tells once it is ready."""
    here, there = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_run_child, args=(serve, there, args), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.kill()
        process.join()


def _run_child(serve: Callable[..., Awaitable[None]], told: Connection, args: Any) -> None:
    with open_quiet_run():
        asyncio.run(serve(told, *args))  # type: ignore[arg-type]


async def _serve_model(told: Connection) -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _answer)
    runner = web.AppRunner(app)
    await runner.setup()
    port = choose_port(0)
    await web.TCPSite(runner, "127.0.0.1", port).start()
    told.send(f"http://127.0.0.1:{port}/v1")
    await asyncio.Event().wait()


async def _answer(request: web.Request) -> web.StreamResponse:
    """A model in OpenAI's format: pieces of text that say when they were sent."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "timed"}
    for number in range(PIECES + 1):
        await asyncio.sleep(SECONDS / PIECES)
        is_last = number == PIECES
        delta = {} if is_last else {"role": "assistant", "content": f"{time.time():.4f} "}
        choice = {"index": 0, "delta": delta, "finish_reason": "stop" if is_last else None}
        await response.write(
            b"data: " + json.dumps({**chunk, "choices": [choice]}).encode() + b"\n\n"
        )
    await response.write(b"data: [DONE]\n\n")
    return response


async def _serve_others(
    told: Connection, database: servers.DatabaseUrls, nats_url: str, port: int
) -> None:
    engine = {"engine_enabled": True, "engine_url": f"http://127.0.0.1:{port}"}
    # As they are delivered, keys are looked up once in a while.
    limits = {"vault_key": VAULT_KEY, "max_concurrent_requests": 200, "key_cache_ttl": 10.0}
    async with open_stack(database, nats_url, model_home(), **engine, **limits) as stack:
        url = require_secret(stack.settings.database_url, "database_url")
        told.send((stack.url, stack.key, port, url, nats_url))
        await asyncio.Event().wait()


async def _measure(
    model: str, others: tuple[str, str, int, str, str], turns: int, apart: float
) -> None:
    url, key, *_ = others
    floor = await _measure_floor(model, turns, apart)
    process = await _start_worker(model, others)
    try:
        async with AsyncReverie(url, key, timeout=60) as reverie:
            await _run(reverie, floor, process.pid, turns, apart)
    finally:
        process.terminate()
        await process.wait()


async def _start_worker(
    model: str, others: tuple[str, str, int, str, str]
) -> asyncio.subprocess.Process:
    gateway, _, port, database_url, nats_url = others
    models = {"default": {"provider": "openai", "model": "timed", "url": model}}
    values = {
        "HOME": tempfile.mkdtemp(),
        "DATABASE_URL": database_url,
        "NATS_URL": nats_url,
        "VAULT_KEY": VAULT_KEY,
        "GATEWAY_URL": gateway,
        "ENGINE_PORT": str(port),
        "ENGINE_MODELS": json.dumps(models),
        "LOG_LEVEL": "warning",
    }
    environment = {f"REVERIE_{name}": value for name, value in values.items()}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "reverie.cli.app.main", "serve", "engine"),
        env={"PATH": os.environ["PATH"], "HOME": values["HOME"], **environment},
    )
    async with aiohttp.ClientSession() as http:

        async def is_ready() -> bool:
            try:
                async with http.get(f"http://127.0.0.1:{port}/ready") as answer:
                    return answer.status == 200
            except OSError:
                return False

        await eventually(is_ready, 60)
    return process


async def _measure_floor(model: str, turns: int, apart: float) -> Figures:
    """As many plain clients at the model."""
    figures = Figures()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:

        async def ask(number: int) -> None:
            await asyncio.sleep(number * apart)
            async with http.post(f"{model}/chat/completions", json={}) as answer:
                async for event in read_server_sent_events(answer.content):
                    if event.data.startswith("{"):
                        delta = json.loads(event.data)["choices"][0]["delta"]
                        figures.note(delta.get("content", ""))

        await asyncio.gather(*(ask(number) for number in range(turns)))
    return figures


async def _run(reverie: AsyncReverie, floor: Figures, pid: int, turns: int, apart: float) -> None:
    groups = [(await reverie.create_group(["beck"], project=f"p{n}")).id for n in range(turns)]
    # The first turn imports what the others find imported.
    await _talk(reverie, groups[0], Figures(), 0.0)
    at_rest, figures = _memory(pid), Figures()
    peaks = [at_rest]
    sampler = asyncio.create_task(_sample(pid, peaks))
    started, used = time.monotonic(), psutil.Process(pid).cpu_times()
    talks = (_talk(reverie, id, figures, n * apart) for n, id in enumerate(groups))
    await asyncio.gather(*talks)
    total, spent = time.monotonic() - started, psutil.Process(pid).cpu_times()
    sampler.cancel()
    await asyncio.sleep(5.0)
    assert len(figures.taken) == turns, "not every turn ended"
    at_most = [max(of) for of in zip(*peaks, strict=True)]
    rows: list[list[object]] = [
        ["all turns, s", f"{total:.1f}"],
        ["a turn, median, s", f"{median(figures.taken):.2f}"],
        ["processor time of the worker, s", f"{sum(spent[:2]) - sum(used[:2]):.1f}"],
    ]
    for name, share in (("p50", 49), ("p95", 94), ("p99", 98)):
        of, least = (quantiles(f.delays, n=100)[share] * 1000 for f in (figures, floor))
        rows.append(
            [f"delay {name}: floor, all, added; ms", f"{least:.1f} {of:.1f} {of - least:.1f}"]
        )
    for name, memory in (("before", at_rest), ("at most", at_most), ("5 s later", _memory(pid))):
        rows.append([f"RSS, PSS {name}, MB", f"{memory[0]:.0f} {memory[1]:.0f}"])
    title = (
        f"{turns} turns, {apart * 1000:g} ms apart, on one worker; the model takes {SECONDS:g} s"
    )
    show(title, ["figure", "value"], rows)


async def _talk(reverie: AsyncReverie, group: object, figures: Figures, after: float) -> None:
    """One turn: the delay of each piece, and how long it took."""
    await asyncio.sleep(after)
    started = time.monotonic()
    posted = await reverie.post_message(str(group), "Say when.")
    async for _, event in reverie.watch_group(str(group), after=posted.after):
        if event.type == "text_delta":
            figures.note(event.data["text"])
        if event.type == "result":
            assert event.data["status"] == "done", event
            figures.taken.append(time.monotonic() - started)
            return


async def _sample(pid: int, peaks: list[tuple[float, float]]) -> None:
    while True:
        await asyncio.sleep(0.5)
        peaks.append(_memory(pid))


def _memory(pid: int) -> tuple[float, float]:
    """The resident and the proportional set size of a process, in MB."""
    info = psutil.Process(pid).memory_full_info()
    return info.rss / 1e6, info.pss / 1e6


if __name__ == "__main__":
    sys.exit(main())
