"""What is remembered of a request that carries an idempotency key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum


class Claim(StrEnum):
    """What became of the wish to answer a request under its key.

    `MINE`: nobody has answered it, the caller does so now. `BUSY`: another does so at this
    moment. `OTHER`: the key stands for another request.
    """

    MINE = "mine"
    BUSY = "busy"
    OTHER = "other"


@dataclass(frozen=True)
class StoredReply:
    """An answer as it was sent, to be sent again; `asked`: SHA-256 of the body it answered."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    asked: bytes = field(default=b"", compare=False)


_REQUEST: ContextVar[str | None] = ContextVar("request", default=None)


@contextmanager
def under(key: str) -> Iterator[None]:
    """Inside it, what is written is noted under this key, so that it is written once."""
    token = _REQUEST.set(key)
    try:
        yield
    finally:
        _REQUEST.reset(token)


def request_in_force() -> str | None:
    """The key of the request that is carried out; None for one that has none."""
    return _REQUEST.get()
