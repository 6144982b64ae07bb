"""Sleeping in a process whose clock libfaketime moves.

Python sleeps by `clock_nanosleep` up to a time of the monotonic clock, and libfaketime (0.9.10)
answers that with EINVAL as soon as any offset is set. What waits by `select` is left alone.
"""

from __future__ import annotations

import select
import time


def _sleep(seconds: float) -> None:
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    select.select([], [], [], seconds)


time.sleep = _sleep  # type: ignore[assignment]
