"""Measures turns of the engine: 100 at once on one worker, against a model that takes 2 seconds.

The worker is a process of its own. The model stamps each piece of text with the time at which it
is sent. The delay is the time until a watcher reads it as an event: by HTTP, through the worker,
Postgres for the step, and NATS. Memory is the worker's own (PSS), at rest and at its most.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from statistics import median, quantiles

import psutil  # type: ignore[import-untyped, unused-ignore]
from aiohttp import web
from aiohttp.test_utils import TestServer

from benchmarks.support.common import parser, show
from reverie.client import AsyncReverie
from reverie.embedded.ports import choose_port
from reverie.runtime.settings.field_types import require_secret
from reverie.testing import servers
from reverie.testing.models import model_home
from tests.support.stack import VAULT_KEY, Stack, eventually, running_stack

TURNS = 100
SECONDS = 2.0
PIECES = 20


def main() -> int:
    """Prints the figures."""
    asked = parser(__doc__)
    asked.add_argument("--turns", type=int, default=TURNS)
    given = asked.parse_args()
    with (
        servers.open_run() as run,
        servers.fresh_database(run) as database,
        servers.own_nats(run) as nats,
    ):
        asyncio.run(_measure(database, nats.url, given.turns))
    return 0


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


async def _measure(database: servers.DatabaseUrls, nats_url: str, turns: int) -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _answer)
    port = choose_port(0)
    async with (
        TestServer(app) as model,
        running_stack(
            database,
            nats_url,
            model_home(),
            vault_key=VAULT_KEY,
            engine_enabled=True,
            engine_url=f"http://127.0.0.1:{port}",
            max_concurrent_requests=200,
        ) as stack,
    ):
        models = {
            "default": {"provider": "openai", "model": "timed", "url": f"{model.make_url('/v1')}"}
        }
        process = await _start_worker(stack, port, json.dumps(models))
        try:
            await _run(stack, port, process.pid, turns)
        finally:
            process.kill()
            await process.wait()


async def _start_worker(stack: Stack, port: int, models: str) -> asyncio.subprocess.Process:
    settings = stack.settings
    values = {
        "HOME": tempfile.mkdtemp(),
        "DATABASE_URL": require_secret(settings.database_url, "database_url"),
        "NATS_URL": require_secret(settings.nats_url, "nats_url"),
        "VAULT_KEY": VAULT_KEY,
        "GATEWAY_URL": stack.url,
        "ENGINE_PORT": str(port),
        "ENGINE_MODELS": models,
        "LOG_LEVEL": "warning",
    }
    environment = {f"REVERIE_{name}": value for name, value in values.items()}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "reverie.cli.app.main", "serve", "engine"),
        env={"PATH": os.environ["PATH"], "HOME": values["HOME"], **environment},
    )

    async def is_ready() -> bool:
        try:
            async with stack.http.get(f"http://127.0.0.1:{port}/ready") as answer:
                return answer.status == 200
        except OSError:
            return False

    await eventually(is_ready, 60)
    return process


async def _run(stack: Stack, port: int, pid: int, turns: int) -> None:
    async with AsyncReverie(stack.url, stack.key, timeout=60) as reverie:
        groups = [(await reverie.create_group(["beck"], project=f"p{n}")).id for n in range(turns)]
        # The first turn imports what the others find imported.
        await _talk(reverie, groups[0], [], [])
        at_rest = _memory(pid)
        delays: list[float] = []
        peaks: list[float] = []
        sampler = asyncio.create_task(_sample(pid, peaks))
        started = time.monotonic()
        taken: list[float] = []
        await asyncio.gather(*(_talk(reverie, group, delays, taken) for group in groups))
        total = time.monotonic() - started
        sampler.cancel()
    assert len(taken) == turns, "not every turn ended"
    percentiles = quantiles(delays, n=100)
    show(
        f"{turns} turns at once on one worker; the model takes {SECONDS:g} s",
        ["figure", "value"],
        [
            ["all turns, s", f"{total:.1f}"],
            ["a turn, median, s", f"{median(taken):.2f}"],
            ["delay of a piece, p50, ms", f"{percentiles[49] * 1000:.1f}"],
            ["delay of a piece, p95, ms", f"{percentiles[94] * 1000:.1f}"],
            ["memory at rest, MB", f"{at_rest:.0f}"],
            ["memory at most, MB", f"{max(peaks, default=at_rest):.0f}"],
        ],
    )


async def _talk(
    reverie: AsyncReverie, group: object, delays: list[float], taken: list[float]
) -> None:
    """One turn: the delay of each piece, and how long it took."""
    started = time.monotonic()
    posted = await reverie.post_message(str(group), "Say when.")
    async for _, event in reverie.watch_group(str(group), after=posted.after):
        now = time.time()
        if event.type == "text_delta":
            # What is sent as one was held up for its first piece the longest.
            delays += [now - float(stamp) for stamp in event.data["text"].split()]
        if event.type == "result":
            assert event.data["status"] == "done", event
            taken.append(time.monotonic() - started)
            return


async def _sample(pid: int, peaks: list[float]) -> None:
    while True:
        peaks.append(_memory(pid))
        await asyncio.sleep(0.5)


def _memory(pid: int) -> float:
    """The proportional set size of a process, in MB."""
    return float(psutil.Process(pid).memory_full_info().pss / 1e6)


if __name__ == "__main__":
    sys.exit(main())
