"""How a process that nobody waits for gives way to those that answer."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_GROUP = Path("/proc/self/autogroup")


def give_way(by: int) -> None:
    """Makes this process nicer, see nice(2); to be called before it has threads.

    Where Linux shares processors out by session (sched_autogroup, see sched(7)), niceness counts
    within a session alone: one that this process leads gives way as a whole.
    """
    os.nice(by)
    if os.getsid(0) == os.getpid():
        # Elsewhere there is no such file, or it may not be written.
        with suppress(OSError):
            _GROUP.write_text(str(by))
