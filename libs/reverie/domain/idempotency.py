"""What is remembered of a request that carries an idempotency key."""

from __future__ import annotations

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
