"""Memories that no store has written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from reverie.domain.core.kinds import KIND_POLICIES, Kind
from reverie.domain.core.memory import Memory, MemoryStatus

NOW = datetime(2025, 6, 1, tzinfo=UTC)


def build_memory(kind: Kind = Kind.DECISION, **fields: Any) -> Memory:
    """A memory that has just been made."""
    usual: dict[str, Any] = {
        "id": UUID(int=1),
        "scope": "global",
        "content": "a memory",
        "content_hash": "0" * 64,
        "tier": KIND_POLICIES[kind].tier,
        "status": MemoryStatus.ACTIVE,
        "version": 1,
        "confidence": 0.8,
        "pinned": False,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Memory(kind=kind, **{**usual, **fields})
