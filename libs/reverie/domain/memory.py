"""A memory, as the rules see it."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from reverie.domain.edges import EdgeKind
from reverie.domain.kinds import Kind, Tier


class Status(StrEnum):
    """Life of a memory: superseded is found and marked, archived on request, deleted never."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    DELETED = "deleted"


class Outcome(StrEnum):
    """What a write did."""

    CREATED = "created"
    DUPLICATE = "duplicate"
    SUPERSEDED = "superseded"


@dataclass(frozen=True)
class NewEdge:
    """An edge from the memory being written to one that stands."""

    to: UUID
    kind: EdgeKind
    weight: float = 1.0
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NewMemory:
    """A memory about to be written: validated, redacted and hashed already."""

    id: UUID
    scope: str
    kind: Kind
    content: str
    content_hash: str
    words: str
    tier: Tier
    confidence: float = 0.8
    key: str | None = None
    supersede_reason: str | None = None
    soft: bool = False
    summary: str | None = None
    tags: tuple[str, ...] = ()
    pinned: bool = False
    session: UUID | None = None
    agent: str | None = None
    source: str = "remember"
    turns: tuple[UUID, ...] = ()
    edges: tuple[NewEdge, ...] = ()
    git: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    scope_names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Superseded:
    """A memory that a write replaced: its version now, and the outbox row that says so."""

    id: UUID
    version: int
    event: UUID


@dataclass(frozen=True)
class Written:
    """The outcome of one write: which memory, its version, and the outbox rows that were made."""

    id: UUID
    outcome: Outcome
    version: int
    event: UUID | None
    superseded: Superseded | None = None


@dataclass(frozen=True)
class Use:
    """What readers did with a memory: how often, when last, and how much surer that made it."""

    count: int = 0
    last: datetime | None = None
    boost: float = 0.0


@dataclass(frozen=True)
class Memory:
    """A memory that stands in the store.

    `confidence` is what writers said; domain.confidence says what time and use left of it.
    `linked`: it has an edge to more than files and sessions. `settled`: its use before this hour.
    """

    id: UUID
    scope: str
    kind: Kind
    content: str
    content_hash: str
    tier: Tier
    status: Status
    version: int
    confidence: float
    pinned: bool
    created_at: datetime
    updated_at: datetime
    key: str | None = None
    summary: str | None = None
    tags: tuple[str, ...] = ()
    session: UUID | None = None
    agent: str | None = None
    source: str = "remember"
    turns: tuple[UUID, ...] = ()
    git: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    enriched: bool = True
    superseded_by: UUID | None = None
    staleness: float = 0.0
    stale_grade: str | None = None
    stale_reason: str | None = None
    confirmed_at: datetime | None = None
    linked: bool = True
    use: Use = Use()
    settled: Use = Use()


_SPACE = re.compile(r"\s+")


def was_true(memory: Memory, at: datetime) -> bool:
    """Whether what the memory says was true at that moment."""
    begun = memory.valid_from is None or memory.valid_from <= at
    return begun and (memory.valid_to is None or at < memory.valid_to)


def content_hash(redacted: str) -> str:
    """SHA-256 of the normalised, redacted content: NFC, white space folded, ends cut."""
    text = _SPACE.sub(" ", unicodedata.normalize("NFC", redacted)).strip()
    return hashlib.sha256(text.encode()).hexdigest()
