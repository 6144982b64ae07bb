"""Open turns that run beside each other: which have not ended, and their events in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar


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


EventT = TypeVar("EventT")


class TurnOrder(Generic[EventT]):
    """Passes the events of one turn on until its end, and then those held of the next turn."""

    def __init__(self) -> None:
        self._shown = ""
        self._held: dict[str, list[tuple[EventT, bool]]] = {}
        self._ended: set[str] = set()

    def add(self, turn: str, event: EventT, is_last: bool) -> list[EventT]:
        """The events to show now, this one or others. `is_last`: it ends its turn."""
        # A worker that lost its turn may still say something after the end.
        if turn in self._ended:
            return [event]
        if self._shown not in {"", turn}:
            self._held.setdefault(turn, []).append((event, is_last))
            return []
        self._shown, shown = turn, [event]
        while is_last:
            self._ended.add(self._shown)
            self._shown, is_last = next(iter(self._held), ""), False
            if self._shown:
                held = self._held.pop(self._shown)
                shown += [event for event, _ in held]
                is_last = held[-1][1]
        return shown
