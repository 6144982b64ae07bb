"""Malloc settings: freed memory is reused or returned to the system."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from reverie.runtime.process import system_resources

pytestmark = pytest.mark.skipif(
    system_resources._glibc_function("mallopt") is None, reason="the allocator is not glibc's"
)

_RUNS = """
import resource
import numpy as np
from reverie.runtime.process import system_resources
system_resources.tune_malloc()

def run():
    # What one text takes of a model: some megabytes, freed before the next.
    held = [np.ones(200_000, np.float32) for _ in range(8)]

run()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    run()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
_BETWEEN = """
from reverie.runtime.process import system_resources
system_resources.tune_malloc()

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

blocks = [bytearray(60_000) for _ in range(2_000)]
last = blocks.pop()
full = resident()
blocks.clear()
kept = resident()
system_resources.trim_memory()
print(full - kept, kept - resident())
"""


def _run_program(program: str, **variables: str) -> list[int]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env=plain | variables,
    )  # fmt: skip
    return [int(word) for word in done.stdout.split()]


def test_memory_freed_by_one_run_serves_the_next() -> None:
    """6.4 MB are 1,600 pages, fifty times."""
    assert _run_program(_RUNS)[0] < 1_600


def test_allocator_settings_of_the_environment_take_precedence() -> None:
    assert _run_program(_RUNS, MALLOC_MMAP_THRESHOLD_="131072")[0] > 40 * 1_600


def test_free_pages_between_used_ones_are_returned() -> None:
    """120 MB, of which the last block stays."""
    held, given_back = _run_program(_BETWEEN)
    assert held < 10_000_000
    assert given_back > 100_000_000
