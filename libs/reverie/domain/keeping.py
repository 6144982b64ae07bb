"""Keeping what was made of texts, within bounds that hold however long the texts are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

CHARS = 65_536
"""Characters of the texts that a function keeps something of: some 20 bytes each are kept."""


class Keeping(Generic[T]):
    """A function of a text that keeps what it made of those it was asked last.

    `chars`: how long these texts are together at most; a longer one is worked on each time.
    """

    def __init__(self, work: Callable[[str], T], chars: int = CHARS) -> None:
        self._work, self._most, self._held = work, chars, 0
        self._known: OrderedDict[str, T] = OrderedDict()
        self._lock = Lock()
        update_wrapper(self, work)

    def __call__(self, text: str) -> T:
        """What the function makes of the text. Whoever gets it must not change it."""
        with self._lock:
            if text in self._known:
                self._known.move_to_end(text)
                return self._known[text]
        made = self._work(text)
        with self._lock:
            self._keep(text, made)
        return made

    def _keep(self, text: str, made: T) -> None:
        if text in self._known or len(text) > self._most:
            return
        self._known[text] = made
        self._held += len(text)
        while self._held > self._most:
            gone, _ = self._known.popitem(last=False)
            self._held -= len(gone)
