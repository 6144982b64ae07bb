"""Request consistency: idempotency claims and replies, and log positions for read-your-writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum


class IdempotencyClaim(StrEnum):
    """The outcome of claiming an idempotency key for a request.

    `ACQUIRED`: the caller answers the request. `IN_PROGRESS`: another process is answering it.
    `KEY_REUSED`: the key belongs to another request.
    """

    ACQUIRED = "acquired"
    IN_PROGRESS = "in_progress"
    KEY_REUSED = "key_reused"


@dataclass(frozen=True)
class StoredReply:
    """An answer that was sent and can be sent again.

    `request_hash` is the SHA-256 of the body that it answered.
    """

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    request_hash: bytes = field(default=b"", compare=False)


_IDEMPOTENCY_KEY: ContextVar[str | None] = ContextVar("request", default=None)


@contextmanager
def use_idempotency_key(key: str) -> Iterator[None]:
    """Writes inside it are recorded under this key, so that a repeated request writes nothing."""
    token = _IDEMPOTENCY_KEY.set(key)
    try:
        yield
    finally:
        _IDEMPOTENCY_KEY.reset(token)


def current_idempotency_key() -> str | None:
    """The idempotency key of the current request, if it has one."""
    return _IDEMPOTENCY_KEY.get()


_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def parse_lsn(text: str) -> int | None:
    """The position in bytes; None if the text is not a position."""
    found = _LSN.fullmatch(text.strip())
    return (int(found[1], 16) << 32) + int(found[2], 16) if found else None


def later_lsn(first: str | None, second: str | None) -> str | None:
    """The later of two positions; an invalid one counts as 0."""
    return max(first, second, key=lambda text: parse_lsn(text or "") or 0)
