"""Remembers each key's last write position, so that replica reads wait for it."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AbstractContextManager

from reverie.domain.core.consistency import parse_lsn
from reverie.domain.core.errors import InvalidInput
from reverie.runtime.auth.authentication import bearer_token
from reverie.runtime.http.read_your_writes import POSITION_HEADER
from reverie.store.db.replica import require_position

_MAX_KEYS = 10_000


class WritePositions:
    """Where each key wrote last through this gateway; other gateways are told by a header.

    `seconds`: as long as a replica may be behind, after which every read sees the write.
    """

    def __init__(self, lifetime: float) -> None:
        self._lifetime = lifetime
        self._positions: OrderedDict[int, tuple[float, int]] = OrderedDict()

    def record(self, headers: Mapping[str, str], position: str) -> None:
        """A write with these headers was answered with this position."""
        parsed, key = parse_lsn(position), _hash_key(headers)
        if parsed is None or key is None:
            return
        self._positions.pop(key, None)
        self._positions[key] = (time.monotonic() + self._lifetime, parsed)
        if len(self._positions) > _MAX_KEYS:
            self._positions.popitem(last=False)

    def read_barrier(self, headers: Mapping[str, str]) -> AbstractContextManager[None]:
        """Reads within see what the headers name, and what their key wrote here.

        Raises `InvalidInput` where they name a position that is none.
        """
        header = headers.get(POSITION_HEADER)
        required = 0 if header is None else parse_lsn(header)
        if required is None:
            raise InvalidInput(
                POSITION_HEADER, "is no position, such as 0/16B3748, that a write was told"
            )
        return require_position(max(required, self._last_position(headers)))

    def _last_position(self, headers: Mapping[str, str]) -> int:
        expires_at, position = self._positions.get(_hash_key(headers) or 0, (0.0, 0))
        return position if expires_at > time.monotonic() else 0


def _hash_key(headers: Mapping[str, str]) -> int | None:
    """The key that a request brings, as a number that does not tell it."""
    key = bearer_token(headers)
    return None if key is None else hash(key)
