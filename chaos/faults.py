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

from chaos.faulty_embedder import EmbedderMode
from chaos.system import PROCESSES, System, leader
from reverie.testing.chaos_proxy import ChaosProxy
from tests.support.stack import eventually

Injection = Callable[[System, Random], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """A name for the report, what is done, and what of a system it needs."""

    name: str
    inject: Injection
    needs: str = ""


def _kill_service(service: str) -> Fault:
    async def inject(system: System, rng: Random) -> None:
        system.kill(service)

    return Fault(f"kill -9 of serve {service}", inject)


async def _restart_services(system: System, rng: Random) -> None:
    for service in PROCESSES:
        system.terminate(service)


def _freeze_service(service: str) -> Fault:
    async def inject(system: System, rng: Random) -> None:
        system.freeze(service, True)
        try:
            await asyncio.sleep(rng.uniform(1, 4))
        finally:
            system.freeze(service, False)

    return Fault(f"serve {service} stands still", inject)


async def _slow_services(system: System, rng: Random) -> None:
    """The process of the services gets a fifth of its time."""
    for _ in range(20):
        system.freeze("all", True)
        await asyncio.sleep(0.12)
        system.freeze("all", False)
        await asyncio.sleep(0.03)


async def _kill_nats(system: System, rng: Random) -> None:
    if system.bus.cluster is not None:
        await _kill_nats_leader(system, rng)
    elif system.bus.single is not None:
        await asyncio.to_thread(system.bus.single.kill)
        await asyncio.sleep(rng.uniform(0.2, 3))
        await asyncio.to_thread(system.bus.single.start)


async def _kill_nats_leader(system: System, rng: Random) -> None:
    cluster = system.bus.cluster
    if cluster is not None:
        number = await asyncio.to_thread(leader, cluster)
        await asyncio.to_thread(cluster.kill, number)
        await asyncio.sleep(rng.uniform(2, 5))
        await asyncio.to_thread(cluster.start, number)
        await eventually(lambda: asyncio.to_thread(cluster.healthy, number))


async def _kill_postgres(system: System, rng: Random) -> None:
    await asyncio.to_thread(system.kill_postgres)
    await asyncio.sleep(rng.uniform(0.2, 3))
    await system.start_postgres()


async def _fail_over(system: System, rng: Random) -> None:
    await asyncio.to_thread(system.fail_over)


async def _kill_services(system: System, rng: Random) -> None:
    for service in PROCESSES:
        system.kill(service)


async def _kill_everything(system: System, rng: Random) -> None:
    await _kill_services(system, rng)
    await asyncio.gather(_kill_nats(system, rng), _kill_postgres(system, rng))


async def _shift_clock(system: System, rng: Random) -> None:
    system.shift_clock(rng.choice((-86_400, -600, 600, 86_400)))
    try:
        await asyncio.sleep(rng.uniform(1, 4))
    finally:
        system.shift_clock(0)


async def _fill_disk(system: System, rng: Random) -> None:
    """Postgres' own; a server that gave up is started again, as its supervisor would."""
    if system.disk is None:
        return
    ballast = system.disk / "ballast"
    await asyncio.to_thread(_write_until_full, ballast)
    try:
        await asyncio.sleep(rng.uniform(2, 4))
    finally:
        ballast.unlink()
    await system.start_postgres()


def _write_until_full(ballast: Path) -> None:
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(1 << 20)):
            continue


def _degrade_embedder(mode: EmbedderMode, name: str) -> Fault:
    """The endpoint that embeds is not well, for some seconds."""

    async def inject(system: System, rng: Random) -> None:
        if system.embedder is None:
            return
        system.embedder.set_mode(mode)
        try:
            await asyncio.sleep(rng.uniform(2, 6))
        finally:
            system.embedder.set_mode(EmbedderMode.NORMAL)

    return Fault(f"the embedder {name}", inject, "embedder")


async def _flood(system: System, rng: Random) -> None:
    """Ten times as many who ask and write, for some seconds."""
    key = next(iter(system.keys.values()))
    auth = {"Authorization": f"Bearer {key}"}
    numbers = count()
    async with aiohttp.ClientSession(system.gateway, headers=auth) as http:

        async def one() -> None:
            while True:
                about = f"crowd {rng.getrandbits(64):x} {next(numbers)}"
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


def _break_network(name: str, apply: Callable[[ChaosProxy], None], to: str) -> Fault:
    """A fault of the network, for some seconds."""

    async def inject(system: System, rng: Random) -> None:
        proxy = system.bus.proxy if to == "NATS" else system.to_postgres
        if proxy is None:
            return
        apply(proxy)
        try:
            await asyncio.sleep(rng.uniform(0.5, 4))
        finally:
            proxy.restore()

    return Fault(f"{to} {name}", inject)


NETWORK: tuple[tuple[str, Callable[[ChaosProxy], None]], ...] = (
    ("cut off", ChaosProxy.reset_connections),
    ("half closed", ChaosProxy.half_close),
    ("silent", ChaosProxy.blackhole),
    ("0.3 s away", lambda proxy: proxy.delay(0.3)),
    ("at 64 KiB/s", lambda proxy: proxy.throttle(65_536)),
)
EMBEDDER = (
    _degrade_embedder(EmbedderMode.SLOW, "is slow"),
    _degrade_embedder(EmbedderMode.HANGING, "hangs"),
    _degrade_embedder(EmbedderMode.FAILING, "fails"),
    _degrade_embedder(EmbedderMode.TORN, "answers torn JSON"),
)
SINGLE_FAULTS = (
    *map(_kill_service, PROCESSES),
    *map(_freeze_service, PROCESSES),
    Fault("kill -9 of nats-server", _kill_nats),
    Fault("kill -9 of Postgres", _kill_postgres),
    Fault("serve all at a fifth of its speed", _slow_services),
    Fault("ten times the load", _flood),
    Fault("the disk of Postgres is full", _fill_disk, "disk"),
    Fault("the clock jumps", _shift_clock, "clock"),
    *EMBEDDER,
    *(_break_network(name, apply, to) for to in ("NATS", "Postgres") for name, apply in NETWORK),
)
GLOBAL_FAULTS = (
    Fault("restart of all services", _restart_services),
    Fault("kill -9 of all services", _kill_services),
    Fault("kill -9 of everything", _kill_everything),
)
CLUSTER_FAULTS = (
    *map(_kill_service, PROCESSES),
    Fault("NATS loses its leader", _kill_nats_leader),
    *EMBEDDER,
    *(_break_network(name, apply, "Postgres") for name, apply in NETWORK),
)
FAIL_OVER = Fault("Postgres fails over", _fail_over)
ALL_FAULTS = (*SINGLE_FAULTS, *GLOBAL_FAULTS)
PAIR_SHARE = 0.35
"""The share of strikes in which two faults come at once."""


class Deck:
    """All faults that can be done to a system, shuffled: each comes before any comes again.

    With `strikes`, the names of faults joined by +, those are dealt in their order instead.
    """

    def __init__(self, system: System, rng: Random, strikes: Sequence[str] = ()) -> None:
        named = {one.name: one for one in (*ALL_FAULTS, *CLUSTER_FAULTS, FAIL_OVER)}
        self._chosen = cycle([[named[name] for name in one.split("+")] for one in strikes])
        self._is_chosen = bool(strikes)
        several = system.bus.cluster is not None
        known = (*CLUSTER_FAULTS, *GLOBAL_FAULTS[:2]) if several else ALL_FAULTS
        self._able = [one for one in known if not one.needs or getattr(system, one.needs)]
        self._rng = rng
        self._left: list[Fault] = []

    def deal(self) -> list[Fault]:
        """The next fault, at times with another beside it; a sweeping one comes alone."""
        if self._is_chosen:
            return next(self._chosen)
        first = self._next()
        if first in GLOBAL_FAULTS or self._rng.random() >= PAIR_SHARE:
            return [first]
        other = self._rng.choice([f for f in self._able if f not in (*GLOBAL_FAULTS, first)])
        return [first, other]

    def _next(self) -> Fault:
        if not self._left:
            self._left = self._rng.sample(self._able, len(self._able))
        return self._left.pop()


async def inject_faults(system: System, faults: list[Fault], rng: Random) -> None:
    """The faults together; ends when the last of them does."""
    await asyncio.gather(*(fault.inject(system, rng) for fault in faults))
