"""What the machine has, or the container that is given less of it."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Where version 2 and 1 of control groups say what was given."""


def memory_bytes() -> int:
    """The bytes of memory that there are to use."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in LIMITS:
        if limit.exists() and (most := limit.read_text().strip()).isdigit():
            there = min(there, int(most))
    return there


def is_python_fast() -> bool:
    """Whether the interpreter was built with optimisations; without, all takes an eighth longer."""
    told = sysconfig.get_config_var("CONFIG_ARGS")
    # A distribution's does not say so, nor does Windows tell anything.
    return told is None or sys.base_prefix == "/usr" or "--enable-optimizations" in told
