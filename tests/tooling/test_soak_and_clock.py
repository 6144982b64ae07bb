"""The soak run's growth detection, and sleeping under a shifted clock."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.soak import Sample, SoakPlan, SoakResult, _run_until_signal, growth
from chaos.system import CLOCK

SLEEPS = """
import time
began = time.monotonic()
time.sleep(0.05)
assert time.monotonic() - began >= 0.05
try:
    time.sleep(-1)
except ValueError:
    print("slept")
"""


def test_a_process_with_a_shifted_clock_sleeps_as_long_as_requested() -> None:
    found = [*Path("/usr/lib").glob("*/faketime/libfaketime.so.1")]
    moved = {"LD_PRELOAD": str(found[0]), "FAKETIME": "+600"} if found else {}
    env = {"PYTHONPATH": str(CLOCK), "FAKETIME_DONT_FAKE_MONOTONIC": "1", **moved}
    done = subprocess.run(
        [sys.executable, "-c", SLEEPS],
        env={"PATH": os.defpath, **env},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("slept\n", "")


MB = 1_000_000.0


def _make_samples(slope: float, late: float = 0.0) -> list[Sample]:
    """An hour of a process that fills 30 MB of caches in its first ten minutes, then grows by so
    many MB in ten minutes, and in the end has so many tasks more."""
    ats = [n * 10.0 for n in range(360)]
    return [
        Sample(
            at,
            memory=100 * MB + min(at / 600, 1) * 30 * MB + at / 600 * slope * MB,
            files=20,
            tasks=12 + (late if at > 2700 else 0),
            threads=4,
        )
        for at in ats
    ]


def test_growth_after_the_caches_are_full_is_reported_and_nothing_else() -> None:
    found = SoakResult(SoakPlan(minutes=50, warm=10), connections=[10.0] * 360)
    found.samples |= {
        "flat": _make_samples(0.9),
        "leaks": _make_samples(1.2),
        "busy": _make_samples(0.0, late=30),
    }
    assert growth(found.samples["leaks"], warm=10) == pytest.approx(1.2)
    assert found.failures() == [
        "leaks grows by 1.2 MB in ten minutes",
        "busy has more tasks in the end: 12, 12, 42",
    ]
    found.connections = [10.0] * 240 + [20.0] * 120
    assert found.failures()[-1] == "Postgres has more connections in the end: 10, 10, 20"


async def test_an_interrupted_soak_stops_what_it_started() -> None:
    taken_down = False

    async def work() -> SoakResult:
        nonlocal taken_down
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        finally:
            taken_down = True
        return SoakResult(SoakPlan())

    with pytest.raises(asyncio.CancelledError):
        await _run_until_signal(work())
    assert taken_down
