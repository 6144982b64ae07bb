"""What stands in a scope while its `memory.md` is gone through. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from reverie.domain.errors import Conflict
from reverie.domain.memory import Memory, content_hash
from reverie.domain.segments import Segment, segment_of

Text = tuple[str, str | None]
"""The hash of a content, and its key: the same text under two keys is two memories."""


class Standing:
    """The active memories of a scope; and, for a dry run, what would stand as it goes on."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._by_id = {segment_of(one).id: one for one in memories}
        self._by_text = {(one.content_hash, one.key): one for one in memories}
        self._by_hash = {one.content_hash: one for one in memories}
        self._said: dict[UUID, Text] = {one.id: (one.content_hash, one.key) for one in memories}
        self._texts = {text: memory for memory, text in self._said.items()}
        self._keys = {one.key: one.id for one in memories if one.key}

    def find(self, segment: Segment) -> Memory | None:
        """The memory of a segment, by its id, else by its text; without a key under any."""
        hashed = content_hash(segment.text)
        by_text = self._by_text.get((hashed, segment.key))
        known = self._by_id.get(segment.id) if segment.id else None
        return known or by_text or (None if segment.key else self._by_hash.get(hashed))

    def says(self, text: Text) -> bool:
        """Whether a memory would say just this."""
        return text in self._texts

    def put(self, memory: UUID, text: Text) -> None:
        """The memory would say this. Raises `Conflict` where another one has its text or key."""
        key = text[1]
        holder = self._texts.get(text) or self._keys.get(key or "")
        if holder not in {None, memory}:
            raise Conflict(f"the active memory {holder} has this content or key already")
        before = self._said.get(memory)
        if before:
            del self._texts[before]
            self._keys.pop(before[1] or "", None)
        self._said[memory], self._texts[text] = text, memory
        if key:
            self._keys[key] = memory
