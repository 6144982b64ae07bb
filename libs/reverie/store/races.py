"""Writes that meet: the one that Postgres turned away is tried again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

from reverie.domain.errors import Unavailable

_TRIES = 5
_RACED = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)

T = TypeVar("T")


async def retried(write: Callable[[], Awaitable[T]], what: str) -> T:
    """What the write answers. Raises `Unavailable` naming `what` where it loses every time."""
    for _ in range(_TRIES):
        try:
            return await write()
        except _RACED:
            continue
    raise busy(what)


def busy(what: str) -> Unavailable:
    """The refusal where many write the same."""
    return Unavailable(what, "many writers change it at once; try again")
