"""Remembering the vectors of texts asked for again: queries repeat."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from reverie.inference.embedder import Embedder
from reverie.inference.meters import UNHEARD, ModelMeters
from reverie.inference.vectors import Vectors

KEPT_TEXTS = 2048
_MAX_KEY_CHARS = 4096


class CachedEmbedder:
    """An embedder that keeps the vectors of the texts used last.

    Holds at most `size` texts with their vectors (1.5 KiB each at 384 dimensions); texts over
    4,096 characters pass by. A text already known gets the very same vector again.
    """

    def __init__(
        self, inner: Embedder, size: int = KEPT_TEXTS, meters: ModelMeters = UNHEARD
    ) -> None:
        self._inner = inner
        self._meters = meters
        self._size = size
        self._known: OrderedDict[str, Vectors] = OrderedDict()

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self._inner.name

    @property
    def dims(self) -> int:
        """The inner model's vector length."""
        return self._inner.dims

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """As the inner embedder does, which sees only the texts not known."""
        known = {text: vector for text in texts if (vector := self._recall(text)) is not None}
        self._meters.known(self.name, len(known))
        fresh = list(dict.fromkeys(text for text in texts if text not in known))
        if fresh:
            made = dict(zip(fresh, await self._inner.embed(fresh), strict=True))
            for text, vector in made.items():
                self._keep(text, vector)
            known |= made
        if not texts:
            return np.zeros((0, self.dims), dtype=np.float32)
        return np.stack([known[text] for text in texts])

    def _recall(self, text: str) -> Vectors | None:
        vector = self._known.get(text)
        if vector is not None:
            self._known.move_to_end(text)
        return vector

    def _keep(self, text: str, vector: Vectors) -> None:
        if len(text) > _MAX_KEY_CHARS:
            return
        self._known[text] = vector.copy()
        while len(self._known) > self._size:
            self._known.popitem(last=False)
