"""What the machine has, or the container that is given less of it."""

from __future__ import annotations

import os
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
