"""An LRU cache for functions of a text, bounded by the total length of the cached texts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

DEFAULT_MAX_CHARS = 65_536
"""Characters of the texts that a function keeps something of: some 20 bytes each are kept."""


class TextCache(Generic[T]):
    """A function of a text that keeps what it made of those it was asked last.

    `chars`: how long these texts are together at most; a longer one is worked on each time.
    """

    def __init__(self, function: Callable[[str], T], max_chars: int = DEFAULT_MAX_CHARS) -> None:
        self._function, self._max_chars, self._cached_chars = function, max_chars, 0
        self._results: OrderedDict[str, T] = OrderedDict()
        self._lock = Lock()
        update_wrapper(self, function)

    def __call__(self, text: str) -> T:
        """What the function makes of the text. Whoever gets it must not change it."""
        with self._lock:
            if text in self._results:
                self._results.move_to_end(text)
                return self._results[text]
        result = self._function(text)
        with self._lock:
            self._store(text, result)
        return result

    def _store(self, text: str, result: T) -> None:
        if text in self._results or len(text) > self._max_chars:
            return
        self._results[text] = result
        self._cached_chars += len(text)
        while self._cached_chars > self._max_chars:
            evicted, _ = self._results.popitem(last=False)
            self._cached_chars -= len(evicted)
