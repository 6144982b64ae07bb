"""What a process keeps of the memory it was given: told to glibc's allocator and to the collector.

A model's run takes megabytes and frees them, text after text. By itself glibc gives each thread an
arena of its own, which grow for hours; told to keep next to nothing, it fetches every page anew,
8 ms for sixty tokens. So it keeps what a run takes, in two arenas, and now and then gives back what
lies between.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from typing import Any

ARENAS = 2
KEPT_BYTES = 16 << 20
"""Larger blocks, and what is free beyond this at the end of an arena, go back at once."""
GIVEN_BACK_SECONDS = 60.0

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""As `malloc.h` numbers them."""


def keep_little() -> None:
    """Tells the allocator what to keep; before threads start. Where it is told by `MALLOC_*`: no.

    Nothing happens where the allocator is not glibc's.
    """
    tell = _of_glibc("mallopt")
    if tell is None or any(name.startswith("MALLOC_") for name in os.environ):
        return
    for what, much in (
        (_ARENA_MAX, ARENAS),
        (_MMAP_THRESHOLD, KEPT_BYTES),
        (_TRIM_THRESHOLD, KEPT_BYTES),
    ):
        tell(what, much)


def give_back() -> None:
    """Gives whole free pages back to the system, wherever they lie; some milliseconds."""
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(0)


async def give_back_now_and_then() -> None:
    """From now on, beside the event loop."""
    while True:
        await asyncio.to_thread(give_back)
        await asyncio.sleep(GIVEN_BACK_SECONDS)


def leave_what_stays() -> None:
    """What is there at the start stays: looking through it again and again stops all else for long.

    A request makes thousands of values that go by themselves, so the collector may wait for more;
    but not for long, for what is left in circles counts by the value: 20,000 of them are 8 MB.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(4_000, 20, 20)


def _of_glibc(name: str) -> Any:
    """That function of the C library; None where it has none of the name."""
    return getattr(ctypes.CDLL(None), name, None)
