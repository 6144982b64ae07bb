"""Remembers the texts of items, so that recall finds them and orders searches of the store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final

from langgraph.store.base import PutOp, get_text_at_path, tokenize_path

from reverie.adapters.common import MAX_MEMORIES, check_stored, forget_keys, split_batches
from reverie.client import AsyncReverie

Namespace = tuple[str, ...]

_TAG: Final = "langgraph"
_MAX_DEPTH: Final = 40
"""A memory has at most fifty tags."""
_MAX_LENGTH: Final = 16_000
_MAX_HITS: Final = 100


class ItemMemories:
    """A memory for each item with text; its key names the item."""

    def __init__(self, reverie: AsyncReverie, scope: str | None, fields: Sequence[str]) -> None:
        self._reverie = reverie
        self._scope = scope
        self._fields = tuple(fields)

    async def write(self, ops: Sequence[PutOp], scope: str) -> None:
        """Remembers the texts of items that were put, and forgets those of items without text.

        `scope`: that of their documents; without one, memories of all scopes would be listed.
        """
        memories, forgotten = [], []
        for op in ops:
            if text := self._read_text(op):
                memories.append(_build_memory(op, text, scope))
            else:
                forgotten.append(name_memory(op.namespace, op.key))
        for batch in split_batches(memories, MAX_MEMORIES):
            check_stored(await self._reverie.remember_batch(batch))
        await forget_keys(self._reverie, scope, forgotten)

    async def score(self, prefix: Namespace, query: str) -> dict[str, float]:
        """How well items under a prefix answer, by the keys of their memories."""
        more: dict[str, Any] = {"scopes": [self._scope]} if self._scope else {}
        tags = [_build_tag(prefix[:_MAX_DEPTH])] if prefix else [_TAG]
        answer = await self._reverie.recall(query, tags=tags, limit=_MAX_HITS, **more)
        return {hit.key: hit.score for hit in answer.memories if hit.key is not None}

    def _read_text(self, op: PutOp) -> str:
        if op.value is None or op.ttl is not None or op.index is False:
            return ""
        texts: list[str] = []
        for path in self._fields if op.index is None else op.index:
            if path == "$":
                texts += _list_texts(op.value)
            else:
                texts += get_text_at_path(op.value, tokenize_path(path))
        return "\n".join(texts)[:_MAX_LENGTH].strip()


def _build_memory(op: PutOp, text: str, scope: str) -> dict[str, Any]:
    ends = range(1, min(len(op.namespace), _MAX_DEPTH) + 1)
    return {
        "content": text,
        "key": name_memory(op.namespace, op.key),
        "soft": True,
        "tags": [_TAG, *(_build_tag(op.namespace[:end]) for end in ends)],
        "scope": scope,
    }


def name_memory(namespace: Namespace, key: str) -> str:
    """The key of the memory of an item."""
    return f"{_TAG}/{_digest([*namespace, key])}"


def _build_tag(prefix: Namespace) -> str:
    """The tag of all memories of items under a namespace."""
    return f"{_TAG}/{_digest(prefix)}"


def _digest(parts: Sequence[str]) -> str:
    return sha256(json.dumps(list(parts)).encode()).hexdigest()[:32]


def _list_texts(value: Any) -> Iterator[str]:
    """The strings of a value, each with the name of its field."""
    if isinstance(value, dict):
        for name, part in value.items():
            if isinstance(part, str):
                yield f"{name}: {part}"
            else:
                yield from _list_texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from [part] if isinstance(part, str) else _list_texts(part)
