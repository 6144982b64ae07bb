"""Writes that meet: the one that Postgres turned away is tried again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from reverie.domain.errors import Unavailable
from reverie.store.pools import RACES

_TRIES = 5

T = TypeVar("T")


async def retried(write: Callable[[], Awaitable[T]], what: str) -> T:
    """What the write answers. Raises `Unavailable` naming `what` where it loses every time."""
    for _ in range(_TRIES):
        try:
            return await write()
        except Unavailable as error:
            # As which the pool tells it.
            if not isinstance(error.__cause__, RACES):
                raise
    raise busy(what)


def busy(what: str) -> Unavailable:
    """The refusal where many write the same."""
    return Unavailable(what, "many writers change it at once; try again")
