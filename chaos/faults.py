"""The faults that are injected, each a coroutine that ends with its fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path
from random import Random

import aiohttp

from chaos.faulty_embedder import Mood
from chaos.system import PROCESSES, System, leader
from reverie.testing.chaos_proxy import ChaosProxy
from tests.support.stack import eventually

Harm = Callable[[System, Random], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """A name for the report, what is done, and what of a system it needs."""

    name: str
    harm: Harm
    needs: str = ""


def _killed(service: str) -> Fault:
    async def harm(system: System, dice: Random) -> None:
        system.kill(service)

    return Fault(f"kill -9 of serve {service}", harm)


async def _restarted(system: System, dice: Random) -> None:
    for service in PROCESSES:
        system.end(service)


def _frozen(service: str) -> Fault:
    async def harm(system: System, dice: Random) -> None:
        system.freeze(service, True)
        try:
            await asyncio.sleep(dice.uniform(1, 4))
        finally:
            system.freeze(service, False)

    return Fault(f"serve {service} stands still", harm)


async def _slowed(system: System, dice: Random) -> None:
    """The process of the services gets a fifth of its time."""
    for _ in range(20):
        system.freeze("all", True)
        await asyncio.sleep(0.12)
        system.freeze("all", False)
        await asyncio.sleep(0.03)


async def _nats_killed(system: System, dice: Random) -> None:
    if system.bus.three is not None:
        await _leader_killed(system, dice)
    elif system.bus.one is not None:
        await asyncio.to_thread(system.bus.one.kill)
        await asyncio.sleep(dice.uniform(0.2, 3))
        await asyncio.to_thread(system.bus.one.start)


async def _leader_killed(system: System, dice: Random) -> None:
    three = system.bus.three
    if three is not None:
        number = await asyncio.to_thread(leader, three)
        await asyncio.to_thread(three.kill, number)
        await asyncio.sleep(dice.uniform(2, 5))
        await asyncio.to_thread(three.start, number)
        await eventually(lambda: asyncio.to_thread(three.healthy, number))


async def _postgres_killed(system: System, dice: Random) -> None:
    await asyncio.to_thread(system.kill_postgres)
    await asyncio.sleep(dice.uniform(0.2, 3))
    await system.start_postgres()


async def _failed_over(system: System, dice: Random) -> None:
    await asyncio.to_thread(system.fail_over)


async def _services_killed(system: System, dice: Random) -> None:
    for service in PROCESSES:
        system.kill(service)


async def _all_killed(system: System, dice: Random) -> None:
    await _services_killed(system, dice)
    await asyncio.gather(_nats_killed(system, dice), _postgres_killed(system, dice))


async def _clock_jumped(system: System, dice: Random) -> None:
    system.jump(dice.choice((-86_400, -600, 600, 86_400)))
    try:
        await asyncio.sleep(dice.uniform(1, 4))
    finally:
        system.jump(0)


async def _disk_full(system: System, dice: Random) -> None:
    """Postgres' own; a server that gave up is started again, as its supervisor would."""
    if system.disk is None:
        return
    ballast = system.disk / "ballast"
    await asyncio.to_thread(_fill, ballast)
    try:
        await asyncio.sleep(dice.uniform(2, 4))
    finally:
        ballast.unlink()
    await system.start_postgres()


def _fill(ballast: Path) -> None:
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(1 << 20)):
            continue


def _embedder(mood: Mood, name: str) -> Fault:
    """The endpoint that embeds is not well, for some seconds."""

    async def harmed(system: System, dice: Random) -> None:
        if system.embedder is None:
            return
        system.embedder.turn(mood)
        try:
            await asyncio.sleep(dice.uniform(2, 6))
        finally:
            system.embedder.turn(Mood.WELL)

    return Fault(f"the embedder {name}", harmed, "embedder")


async def _crowd(system: System, dice: Random) -> None:
    """Ten times as many who ask and write, for some seconds."""
    key = next(iter(system.keys.values()))
    auth = {"Authorization": f"Bearer {key}"}
    numbers = count()
    async with aiohttp.ClientSession(system.gateway, headers=auth) as http:

        async def one() -> None:
            while True:
                about = f"crowd {dice.getrandbits(64):x} {next(numbers)}"
                for path, body in (
                    ("/v1/remember", {"content": f"{about} came by.", "scope": "project/crowd"}),
                    ("/v1/recall", {"query": about, "limit": 3}),
                ):
                    with suppress(aiohttp.ClientError, TimeoutError):
                        async with http.post(path, json=body) as answer:
                            await answer.read()

        with suppress(TimeoutError):
            async with asyncio.timeout(4):
                await asyncio.gather(*(one() for _ in range(90)))


def _between(name: str, harm: Callable[[ChaosProxy], None], to: str) -> Fault:
    """A fault of the network, for some seconds."""

    async def harmed(system: System, dice: Random) -> None:
        proxy = system.bus.proxy if to == "NATS" else system.to_postgres
        if proxy is None:
            return
        harm(proxy)
        try:
            await asyncio.sleep(dice.uniform(0.5, 4))
        finally:
            proxy.restore()

    return Fault(f"{to} {name}", harmed)


NETWORK: tuple[tuple[str, Callable[[ChaosProxy], None]], ...] = (
    ("cut off", ChaosProxy.reset_connections),
    ("half closed", ChaosProxy.half_close),
    ("silent", ChaosProxy.blackhole),
    ("0.3 s away", lambda proxy: proxy.delay(0.3)),
    ("at 64 KiB/s", lambda proxy: proxy.throttle(65_536)),
)
EMBEDDER = (
    _embedder(Mood.SLOW, "is slow"),
    _embedder(Mood.HANGING, "hangs"),
    _embedder(Mood.FAILING, "fails"),
    _embedder(Mood.TORN, "answers torn JSON"),
)
SINGLE = (
    *map(_killed, PROCESSES),
    *map(_frozen, PROCESSES),
    Fault("kill -9 of nats-server", _nats_killed),
    Fault("kill -9 of Postgres", _postgres_killed),
    Fault("serve all at a fifth of its speed", _slowed),
    Fault("ten times the load", _crowd),
    Fault("the disk of Postgres is full", _disk_full, "disk"),
    Fault("the clock jumps", _clock_jumped, "clock"),
    *EMBEDDER,
    *(_between(name, harm, to) for to in ("NATS", "Postgres") for name, harm in NETWORK),
)
SWEEPING = (
    Fault("restart of all services", _restarted),
    Fault("kill -9 of all services", _services_killed),
    Fault("kill -9 of everything", _all_killed),
)
CLUSTER = (
    *map(_killed, PROCESSES),
    Fault("NATS loses its leader", _leader_killed),
    *EMBEDDER,
    *(_between(name, harm, "Postgres") for name, harm in NETWORK),
)
FAIL_OVER = Fault("Postgres fails over", _failed_over)
KNOWN = (*SINGLE, *SWEEPING)
TOGETHER = 0.35
"""The share of strikes in which two faults come at once."""


class Deck:
    """All faults that can be done to a system, shuffled: each comes before any comes again.

    With `strikes`, the names of faults joined by +, those are dealt in their order instead.
    """

    def __init__(self, system: System, dice: Random, strikes: Sequence[str] = ()) -> None:
        named = {one.name: one for one in (*KNOWN, *CLUSTER, FAIL_OVER)}
        self._chosen = cycle([[named[name] for name in one.split("+")] for one in strikes])
        self._is_chosen = bool(strikes)
        several = system.bus.three is not None
        known = (*CLUSTER, *SWEEPING[:2]) if several else KNOWN
        self._able = [one for one in known if not one.needs or getattr(system, one.needs)]
        self._dice = dice
        self._left: list[Fault] = []

    def deal(self) -> list[Fault]:
        """The next fault, at times with another beside it; a sweeping one comes alone."""
        if self._is_chosen:
            return next(self._chosen)
        first = self._next()
        if first in SWEEPING or self._dice.random() >= TOGETHER:
            return [first]
        other = self._dice.choice([f for f in self._able if f not in (*SWEEPING, first)])
        return [first, other]

    def _next(self) -> Fault:
        if not self._left:
            self._left = self._dice.sample(self._able, len(self._able))
        return self._left.pop()


async def strike(system: System, faults: list[Fault], dice: Random) -> None:
    """The faults together; ends when the last of them does."""
    await asyncio.gather(*(fault.harm(system, dice) for fault in faults))
