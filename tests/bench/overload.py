"""Five times as many requests as the machine holds: how long those let in take, what others get.

`python -m tests.bench.overload [--seconds 30]` brings up a Reverie of its own and asks it, first
one request after another (unloaded), then as fast as eight clients are answered (what it holds),
then five times that rate whatever is answered (overloaded).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import aiohttp
from tests.bench.common import Measured, Running, load, running, show
from yarl import URL

TIMES = 5
ALONE, WARM = 300, 100
WAITING = 4_000
"""Requests under way at once that the measurement itself bears."""
TITLE = """Five times what it holds; 'let in' as a share of what it holds, 'times': the p99 of what
is let in by the unloaded p99"""


@dataclass(frozen=True)
class Answer:
    """A status, the head as it came, and the body."""

    status: int
    head: bytes
    body: bytes


class Wire:
    """Requests over as many connections as are needed, at as little cost as can be.

    What measures must not take the time that it measures.
    """

    def __init__(self, system: Running) -> None:
        self._where = URL(system.gateway)
        self._key = system.key
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, path: str, body: object) -> Answer:
        """One request. Raises `OSError` or `EOFError` where the connection breaks."""
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._where.host}\r\n"
            f"Authorization: Bearer {self._key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        )
        host, port = self._where.host, self._where.port
        reader, writer = (
            self._free.pop() if self._free else await asyncio.open_connection(host, port)
        )
        writer.write(head.encode() + data)
        told = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"(?i)content-length: (\d+)", told)
        content = await reader.readexactly(int(found[1])) if found else b""
        self._free.append((reader, writer))
        return Answer(int(told[9:12]), told, content)


Ask = Callable[[int], Awaitable[Answer]]


@dataclass
class Flood:
    """What became of requests that came at a rate of their own."""

    let_in: list[float] = field(default_factory=list)
    turned_away: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    without_retry: int = 0
    broken: int = 0
    ids: list[str] = field(default_factory=list)


async def flood(rate: float, seconds: float, ask: Ask, warm: float = 2.0) -> Flood:
    """Requests at random moments, `rate` a second; the first `warm` seconds are not counted."""
    found = Flood()
    begun, tasks, number = time.perf_counter(), set[asyncio.Task[None]](), 0
    due = begun
    while due - begun < seconds + warm:
        due += random.expovariate(rate)
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        if len(tasks) < WAITING:
            task = asyncio.create_task(_one(number, ask, found, due - begun > warm))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        number += 1
    await asyncio.gather(*tasks)
    return found


async def _one(number: int, ask: Ask, found: Flood, counts: bool) -> None:
    begun = time.perf_counter()
    try:
        answer = await ask(number)
    except (OSError, EOFError):
        found.broken += 1
        return
    taken = time.perf_counter() - begun
    if answer.status == 201:
        found.ids.append(json.loads(answer.body)["id"])
    if not counts:
        return
    found.statuses[answer.status] += 1
    (found.let_in if answer.status < 300 else found.turned_away).append(taken)
    if answer.status in (429, 503) and b"\nRetry-After:" not in answer.head:
        found.without_retry += 1


@dataclass(frozen=True)
class Result:
    """One kind of request, alone, as fast as it goes, and five times that."""

    name: str
    alone: Measured
    held: float
    flood: Flood
    seconds: float

    @property
    def times(self) -> float:
        """The p99 of what was let in, by the unloaded p99."""
        return Measured(self.flood.let_in, self.seconds).at(0.99) / self.alone.at(0.99)

    def row(self) -> list[str]:
        """As it is shown."""
        let = Measured(self.flood.let_in, self.seconds)
        whole = sum(self.flood.statuses.values())
        return [
            self.name,
            f"{self.alone.at(0.5):.1f}",
            f"{self.alone.at(0.99):.1f}",
            f"{self.held:.0f}",
            f"{whole / self.seconds:.0f}",
            f"{len(self.flood.let_in) / self.seconds / self.held:.2f}",
            f"{let.at(0.99):.1f}",
            f"{self.times:.2f}",
        ]


async def measure(name: str, ask: Ask, seconds: float) -> Result:
    """One kind of request."""

    await load(4, WARM, ask)
    alone = await load(1, ALONE, ask)
    held = await _held(ask)
    return Result(name, alone, held, await flood(TIMES * held, seconds, ask), seconds)


async def _held(ask: Ask) -> float:
    """Requests a second that are answered with what was asked for, eight under way at a time."""
    good = 0

    async def once(number: int) -> None:
        nonlocal good
        answer = await ask(number)
        good += answer.status < 300

    found = await load(8, ALONE * 2, once)
    return good / found.whole


async def kept(system: Running, ids: list[str]) -> int:
    """How many of the memories whose writes were answered are there."""
    there = 0
    headers = {"Authorization": f"Bearer {system.key}"}
    async with aiohttp.ClientSession(system.gateway, headers=headers) as http:
        for memory in ids:
            async with http.get(f"/v1/memories/{memory}") as answer:
                there += answer.status == 200
    return there


async def main(seconds: float) -> None:
    with running() as system:
        wire = Wire(system)

        def remember(number: int) -> Awaitable[Answer]:
            said = f"Worker {number} of {time.time_ns()} keeps its {random.random()} apart"
            return wire.post("/v1/remember", {"content": said, "scope": "project/shop"})

        def recall(number: int) -> Awaitable[Answer]:
            query = f"which worker keeps {number % 97} apart"
            return wire.post("/v1/recall", {"query": query, "limit": 5})

        written = await measure("remember", remember, seconds)
        read = await measure("recall", recall, seconds)
        there = await kept(system, written.flood.ids)
    columns = ("", "p50 ms", "p99 ms", "held/s", "sent/s", "let in", "its p99 ms", "times")
    show(TITLE, columns, [written.row(), read.row()])
    for one in (written, read):
        _tell(one)
    print(f"of {len(written.flood.ids)} memories whose write was answered, {there} are there")


def _tell(one: Result) -> None:
    told = ", ".join(f"{n} times {status}" for status, n in sorted(one.flood.statuses.items()))
    lacking = f"{one.flood.without_retry} refusals without Retry-After"
    print(f"{one.name}: {told}; {lacking}, {one.flood.broken} connections broken")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    asyncio.run(main(parser.parse_args().seconds))
