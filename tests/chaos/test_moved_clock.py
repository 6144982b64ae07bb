"""Sleeping while the clock is moved, as the processes of `make chaos` do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.chaos.system import CLOCK

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


def test_a_process_whose_clock_is_moved_sleeps_as_long_as_it_asked() -> None:
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
