"""Memory of CrewAI, kept in Reverie.

`storage = ReverieStorage(client)`, then `Memory(storage=storage, embedder=carry_text)`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from crewai.memory.types import MemoryRecord, ScopeInfo

from reverie.adapters.common import MAX_FORGOTTEN, MAX_MEMORIES, check_stored, split_batches
from reverie.client import Reverie
from reverie.client.parameters import RecallFields
from reverie.contracts.memories.memories import MemoryBody

MOST_HITS = 100
"""Most hits of one recall."""
_SIGN_COUNT = 256
_SCALE = 2.0**-40
_FIELDS = {"categories", "created_at", "importance", "last_accessed", "metadata", "private"}
_FIELDS |= {"scope", "source"}


def carry_text(texts: Sequence[str]) -> list[list[float]]:
    """The embedder for `ReverieStorage`: a vector holds its text, which Reverie searches by.

    Vectors of the same text are equal, and others are far apart.
    """
    return [
        [1.0 if byte >> bit & 1 else -1.0 for byte in _digest(text) for bit in range(8)]
        + [ord(char) * _SCALE for char in text]
        for text in texts
    ]


def read_text(vector: Sequence[float]) -> str:
    """The text in a vector. Raises `ValueError` for the vector of another embedder."""
    codes = [value / _SCALE for value in vector[_SIGN_COUNT:]]
    if all(code.is_integer() and 0 <= code <= 0x10FFFF for code in codes):
        text = "".join(chr(int(code)) for code in codes)
        if list(vector) == carry_text([text])[0]:
            return text
    raise ValueError("a vector holds no text: give the memory `embedder=carry_text`")


class ReverieStorage:
    """A storage backend: each record is a memory of one scope, its place in the crew a tag."""

    def __init__(self, client: Reverie, *, scope: str = "project/crewai") -> None:
        self._client, self._scope = client, scope

    def save(self, records: list[MemoryRecord]) -> None:
        """Stores records; one whose id is known replaces what was there."""
        items = [
            {
                **self._build_memory(record),
                "scope": self._scope,
                "key": f"crewai/{record.id}",
                "supersede_reason": "saved again",
            }
            for record in records
        ]
        for batch in split_batches(items, MAX_MEMORIES):
            check_stored(self._client.remember_batch(batch))

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """The records that answer the text in the vector, best first, with their relevance."""
        if limit <= 0:
            return []
        filtered = bool(categories or metadata_filter)
        fields: RecallFields = {
            "scopes": [self._scope],
            "limit": min(MOST_HITS, limit * 3 if filtered else limit),
            "tags": [_place_tag(scope_prefix)],
        }
        answer = self._client.recall(read_text(query_embedding), **fields)
        found = []
        for hit in answer.memories if answer.answered else []:
            score = hit.score if hit.relevance is None else hit.relevance
            record = self._read_memory(self._client.get_memory(hit.id))
            if score >= min_score and _passes(record, categories, metadata_filter):
                found.append((record, score))
        return sorted(found, key=lambda pair: -pair[1])[:limit]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Forgets the records that match all given conditions; returns how many."""
        keys = None if record_ids is None else [f"crewai/{id}" for id in record_ids]
        # An earlier text of a record may have stood in another place: below a path, by keys.
        if categories or metadata_filter or older_than or _canonical(scope_prefix) != "/":
            keys = [
                str(memory.key)
                for memory in self._memories(scope_prefix)
                if (keys is None or memory.key in keys)
                and _passes(self._read_memory(memory), categories, metadata_filter)
                and (older_than is None or self._read_memory(memory).created_at < older_than)
            ]
        count = self._forget(keys, "active")
        self._forget(keys, "superseded")
        return count

    def update(self, record: MemoryRecord) -> None:
        """Replaces the record with the same id; an unknown one is stored."""
        for memory in self._versions(f"crewai/{record.id}", "active"):
            self._client.edit_memory(memory.id, self._build_memory(record))
            return
        self.save([record])

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """The record with an id."""
        known = self._versions(f"crewai/{record_id}", "active")
        return next((self._read_memory(memory) for memory in known), None)

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """The records below a path, the newest first."""
        if limit <= 0 or offset < 0:
            return []
        records = [self._read_memory(memory) for memory in self._memories(scope_prefix)]
        records.sort(key=lambda record: record.created_at, reverse=True)
        return records[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """How many records lie below a path, their categories, times and the paths below it."""
        records = [self._read_memory(memory) for memory in self._memories(scope)]
        times = [record.created_at for record in records]
        return ScopeInfo(
            path=_canonical(scope),
            record_count=len(records),
            categories=sorted({name for record in records for name in record.categories}),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=_children(scope, records),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """The paths directly below one."""
        return _children(parent, [self._read_memory(memory) for memory in self._memories(parent)])

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """The categories below a path, each with its number of records."""
        records = [self._read_memory(memory) for memory in self._memories(scope_prefix)]
        return dict(Counter(name for record in records for name in record.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        """How many records lie below a path."""
        return sum(1 for _ in self._memories(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Forgets all records below a path; other memories of the scope stay."""
        self.delete(scope_prefix)

    async def asave(self, records: list[MemoryRecord]) -> None:
        """As `save`."""
        await asyncio.to_thread(self.save, records)

    async def asearch(self, *args: Any, **filters: Any) -> list[tuple[MemoryRecord, float]]:
        """As `search`."""
        return await asyncio.to_thread(self.search, *args, **filters)

    async def adelete(self, *args: Any, **filters: Any) -> int:
        """As `delete`."""
        return await asyncio.to_thread(self.delete, *args, **filters)

    def _memories(self, prefix: str | None) -> Iterator[MemoryBody]:
        return self._client.list_memories(
            scope=self._scope, tag=_place_tag(prefix), status=["active"]
        )

    def _forget(self, keys: list[str] | None, status: str) -> int:
        """Forgets the records of keys, or all; returns how many memories."""
        tag, count = _place_tag(None), 0
        batches = [None] if keys is None else split_batches(keys, MAX_FORGOTTEN)
        for batch in batches:
            more = True
            while more:
                answer = self._client.forget_batch(
                    scope=self._scope, tag=tag, keys=batch, status=[status]
                )
                count, more = count + answer.forgotten, answer.more
        return count

    def _versions(self, key: str, *status: str) -> Iterator[MemoryBody]:
        return self._client.list_memories(scope=self._scope, key=key, status=status)

    def _build_memory(self, record: MemoryRecord) -> dict[str, Any]:
        return {
            "content": record.content,
            "tags": _place_tags(record.scope),
            "metadata": {"crewai": record.model_dump(mode="json", include=_FIELDS)},
        }

    def _read_memory(self, memory: MemoryBody) -> MemoryRecord:
        fields = {name: memory.metadata["crewai"][name] for name in _FIELDS}
        return MemoryRecord(
            id=str(memory.key).removeprefix("crewai/"), content=memory.content, **fields
        )


def _passes(
    record: MemoryRecord, categories: list[str] | None, metadata: dict[str, Any] | None
) -> bool:
    """Whether a record has one of the categories, and all of the metadata."""
    return (not categories or not {*categories}.isdisjoint(record.categories)) and all(
        record.metadata.get(name) == value for name, value in (metadata or {}).items()
    )


def _children(parent: str, records: Sequence[MemoryRecord]) -> list[str]:
    start = _canonical(parent).rstrip("/") + "/"
    paths = [_canonical(record.scope) for record in records]
    below = {path.removeprefix(start).partition("/")[0] for path in paths}
    return sorted(start + name for name in below if name)


def _canonical(path: str | None) -> str:
    return "/" + "/".join(part for part in (path or "").split("/") if part)


def _place_tags(path: str) -> list[str]:
    """A tag for a path and for each above it, so that a list or search takes all below one."""
    parts = _canonical(path).strip("/").split("/")
    return sorted({_place_tag("/".join(parts[:n])) for n in range(len(parts) + 1)})


def _place_tag(path: str | None) -> str:
    tag = f"crewai:{_canonical(path)}"
    return tag if len(tag) <= 64 else f"crewai:{_digest(tag).hex()[:48]}"


def _digest(text: str) -> bytes:
    return sha256(text.encode(errors="surrogatepass")).digest()
