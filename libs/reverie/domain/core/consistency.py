"""Request consistency: idempotency claims and replies, and log positions for read-your-writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum


class IdempotencyClaim(StrEnum):
    """What became of the wish to answer a request under its key.

    `ACQUIRED`: nobody has answered it, the caller does so now. `IN_PROGRESS`: another does so at
    this moment. `KEY_REUSED`: the key stands for another request.
    """

    ACQUIRED = "mine"
    IN_PROGRESS = "busy"
    KEY_REUSED = "other"


@dataclass(frozen=True)
class StoredReply:
    """An answer as it was sent, to be sent again;

    `request_hash`: SHA-256 of the body it answered.
    """

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    request_hash: bytes = field(default=b"", compare=False)


_IDEMPOTENCY_KEY: ContextVar[str | None] = ContextVar("request", default=None)


@contextmanager
def use_idempotency_key(key: str) -> Iterator[None]:
    """Inside it, what is written is noted under this key, so that it is written once."""
    token = _IDEMPOTENCY_KEY.set(key)
    try:
        yield
    finally:
        _IDEMPOTENCY_KEY.reset(token)


def current_idempotency_key() -> str | None:
    """The key of the request that is carried out; None for one that has none."""
    return _IDEMPOTENCY_KEY.get()


_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def parse_lsn(text: str) -> int | None:
    """The position as a number of bytes; None where the text is none."""
    found = _LSN.fullmatch(text.strip())
    return (int(found[1], 16) << 32) + int(found[2], 16) if found else None


def later_lsn(first: str | None, second: str | None) -> str | None:
    """The later of two positions; what is none counts as the beginning."""
    return max(first, second, key=lambda text: parse_lsn(text or "") or 0)
