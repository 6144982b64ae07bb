"""Memory of the machine, niceness of the process, tuning of malloc and the collector."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path
from typing import Any

from reverie.contracts.host_system import is_linux

MEMORY_LIMIT_FILES = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Files in which versions 2 and 1 of control groups state their limits."""


def memory_bytes() -> int:
    """The bytes of memory that there are to use."""
    available = _machine_memory()
    for limit in MEMORY_LIMIT_FILES:
        if limit.exists() and (limit_bytes := limit.read_text().strip()).isdigit():
            available = min(available, int(limit_bytes))
    return available


def _machine_memory() -> int:
    """The bytes of memory of the machine; not every system says it through sysconf(3)."""
    if "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    import psutil  # type: ignore[import-untyped]

    return int(psutil.virtual_memory().total)


def is_optimized_python() -> bool:
    """Whether the interpreter was built with optimisations; without, all takes an eighth longer."""
    configure_args = sysconfig.get_config_var("CONFIG_ARGS")
    # The Python of a distribution does not report it, nor does Python on Windows.
    return (
        configure_args is None
        or sys.base_prefix == "/usr"
        or "--enable-optimizations" in configure_args
    )


_AUTOGROUP_FILE = Path("/proc/self/autogroup")


def set_niceness(increment: int) -> None:
    """Makes this process nicer, see nice(2); to be called before it has threads.

    Where Linux shares processors out by session (sched_autogroup, see sched(7)), niceness counts
    within a session alone: one that this process leads gives way as a whole.
    """
    os.nice(increment)
    if is_linux() and os.getsid(0) == os.getpid():
        # The kernel may lack the file, or not let it be written.
        with suppress(OSError):
            _AUTOGROUP_FILE.write_text(str(increment))


MALLOC_ARENAS = 2
RETAINED_BYTES = 16 << 20
"""Larger blocks, and what is free beyond this at the end of an arena, go back at once."""
TRIM_INTERVAL = 60.0

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""As `malloc.h` numbers them."""


def tune_malloc() -> None:
    """Configures the allocator, before threads start. `MALLOC_*` variables take precedence.

    With glibc's defaults, processes that run models grow by 20 to 60 MB in ten minutes. A small
    trim threshold alone costs 3,600 page faults for each text. Does nothing if the allocator is
    not glibc's.
    """
    mallopt = _glibc_function("mallopt")
    if mallopt is None or any(name.startswith("MALLOC_") for name in os.environ):
        return
    for option, value in (
        (_ARENA_MAX, MALLOC_ARENAS),
        (_MMAP_THRESHOLD, RETAINED_BYTES),
        (_TRIM_THRESHOLD, RETAINED_BYTES),
    ):
        mallopt(option, value)


def trim_memory() -> None:
    """Gives whole free pages back to the system, wherever they lie; some milliseconds."""
    trim = _glibc_function("malloc_trim")
    if trim is not None:
        trim(0)


async def trim_memory_periodically() -> None:
    """Returns free memory to the system at intervals, in a thread."""
    while True:
        await asyncio.to_thread(trim_memory)
        await asyncio.sleep(TRIM_INTERVAL)


def freeze_gc() -> None:
    """Excludes the objects that exist at start from garbage collection, whose scans stop all else.

    A request creates thousands of objects that are freed without the collector, so it may run less
    often. But not too rarely: 20,000 objects in reference cycles take 8 MB.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(4_000, 20, 20)


def _glibc_function(name: str) -> Any:
    """Returns that function of the C library; None if it does not exist."""
    return getattr(ctypes.CDLL(None), name, None)
