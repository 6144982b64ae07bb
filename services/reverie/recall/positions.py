"""Reads that see the writes before them, where a replica answers."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AbstractContextManager

from reverie.domain.errors import Invalid
from reverie.domain.positions import parse_position
from reverie.runtime.auth import bearer_of
from reverie.runtime.positions import POSITION
from reverie.store.replica import seeing

_KEPT = 10_000


class Written:
    """Where each key wrote last through this gateway; other gateways are told by a header.

    `seconds`: as long as a replica may be behind, after which every read sees the write.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last: OrderedDict[int, tuple[float, int]] = OrderedDict()

    def note(self, headers: Mapping[str, str], position: str) -> None:
        """A write with these headers was answered with this position."""
        found, key = parse_position(position), _holder(headers)
        if found is None or key is None:
            return
        self._last.pop(key, None)
        self._last[key] = (time.monotonic() + self._seconds, found)
        if len(self._last) > _KEPT:
            self._last.popitem(last=False)

    def heed(self, headers: Mapping[str, str]) -> AbstractContextManager[None]:
        """Reads within see what the headers name, and what their key wrote here.

        Raises `Invalid` where they name a position that is none.
        """
        named = headers.get(POSITION)
        asked = 0 if named is None else parse_position(named)
        if asked is None:
            raise Invalid(POSITION, "is no position, such as 0/16B3748, that a write was told")
        return seeing(max(asked, self._own(headers)))

    def _own(self, headers: Mapping[str, str]) -> int:
        until, position = self._last.get(_holder(headers) or 0, (0.0, 0))
        return position if until > time.monotonic() else 0


def _holder(headers: Mapping[str, str]) -> int | None:
    """The key that a request brings, as a number that does not tell it."""
    key = bearer_of(headers)
    return None if key is None else hash(key)
