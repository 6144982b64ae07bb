"""Remembers each key's last write position, so that replica reads wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from cachetools import TTLCache

from reverie.contracts.headers import POSITION_HEADER
from reverie.domain.core.consistency import parse_lsn
from reverie.domain.core.errors import InvalidInput
from reverie.runtime.auth.authentication import bearer_token
from reverie.store.db.replica import require_position

_MAX_KEYS = 10_000


class WritePositions:
    """The position of each key's last write through this gateway; a header informs other gateways.

    `lifetime`: the longest lag of a replica in seconds, after which every read sees the write.
    """

    def __init__(self, lifetime: float) -> None:
        self._positions: TTLCache[int, int] = TTLCache(_MAX_KEYS, lifetime)

    def record(self, headers: Mapping[str, str], position: str) -> None:
        """A write with these headers was answered with this position."""
        parsed, key = parse_lsn(position), bearer_token(headers)
        if parsed is not None and key is not None:
            self._positions[hash(key)] = parsed

    def read_barrier(self, headers: Mapping[str, str]) -> AbstractContextManager[None]:
        """Makes reads in the block see the writes that the headers name and those of their key.

        Raises `InvalidInput` if a named position is malformed.
        """
        header = headers.get(POSITION_HEADER)
        required = 0 if header is None else parse_lsn(header)
        if required is None:
            raise InvalidInput(
                POSITION_HEADER, "is no position, such as 0/16B3748, that a write was told"
            )
        key = bearer_token(headers)
        last = 0 if key is None else self._positions.get(hash(key), 0)
        return require_position(max(required, last))
