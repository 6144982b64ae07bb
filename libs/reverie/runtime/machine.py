"""What the machine has, or the container that is given less of it."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def memory_bytes(limit: Path | None = None) -> int:
    """The bytes of memory that there are to use; `limit`: the file that says what was given."""
    limit = limit or CGROUP_LIMIT
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if limit.exists() and (most := limit.read_text().strip()).isdigit():
        there = min(there, int(most))
    return there
