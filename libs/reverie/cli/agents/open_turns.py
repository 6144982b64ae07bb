"""Tracks the turns that a message caused and that have not ended, by their events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class OpenTurns:
    """Counts turns that begin and end. Each event may come twice, and a turn's end before the event
    that names the turn."""

    def __init__(self, turns: Iterable[str]) -> None:
        self._open, self._over = set(turns), set[str]()

    def __bool__(self) -> bool:
        return bool(self._open)

    def note(self, kind: str, turn: str, data: Mapping[str, Any]) -> None:
        """Records an event of a turn."""
        if kind == "result":
            self._over.add(turn)
        elif kind == "handed_on":
            self._open.add(data["turn"])
        self._open -= self._over
