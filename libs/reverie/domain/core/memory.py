"""The memory records that are written and read, content hashes, and the check for plain state."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from reverie.domain.core.kinds import EdgeKind, Kind, Tier


class MemoryStatus(StrEnum):
    """The status of a memory. Recall marks superseded ones, and finds archived ones on request."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    DELETED = "deleted"


class WriteOutcome(StrEnum):
    """The outcome of a write."""

    CREATED = "created"
    DUPLICATE = "duplicate"
    SUPERSEDED = "superseded"


@dataclass(frozen=True)
class NewEdge:
    """An edge from a new memory to an existing one."""

    to: UUID
    kind: EdgeKind
    weight: float = 1.0
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NewMemory:
    """A memory to be written, already validated, redacted and hashed."""

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
class SupersededMemory:
    """A memory that a write replaced: its new version and the outbox row of the event."""

    id: UUID
    version: int
    event: UUID


@dataclass(frozen=True)
class WriteResult:
    """The result of one write: the memory, its version and the new outbox rows."""

    id: UUID
    outcome: WriteOutcome
    version: int
    event: UUID | None
    superseded: SupersededMemory | None = None


@dataclass(frozen=True)
class MemoryUsage:
    """The use of a memory: how often, when last, and the boost of its confidence."""

    count: int = 0
    last: datetime | None = None
    boost: float = 0.0


@dataclass(frozen=True)
class Memory:
    """A memory in the store.

    `confidence` is the value from the writers; domain.confidence computes the current one from time
    and use. `linked`: it has an edge to more than files and sessions. `settled_use`: its use before
    this hour.
    """

    id: UUID
    scope: str
    kind: Kind
    content: str
    content_hash: str
    tier: Tier
    status: MemoryStatus
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
    use: MemoryUsage = MemoryUsage()
    settled_use: MemoryUsage = MemoryUsage()

    @property
    def dates_from(self) -> datetime:
        """When it began to be true, or when it was written if its truth lay ahead then."""
        return min(self.valid_from or self.created_at, self.created_at)


_TITLE_ONLY = re.compile(r"Session: [^\n]*")
_WHITESPACE = re.compile(r"\s+")


def is_title_only(content: str) -> bool:
    """Whether a memory holds the title of a session alone, as a dream writes it.

    A title repeats what was asked, and answers nothing.
    """
    return _TITLE_ONLY.fullmatch(content.strip()) is not None


def was_valid_at(memory: Memory, at: datetime) -> bool:
    """Whether the memory was valid at that time."""
    has_started = memory.valid_from is None or memory.valid_from <= at
    return has_started and (memory.valid_to is None or at < memory.valid_to)


def hash_content(redacted: str) -> str:
    """SHA-256 of the redacted content after normalisation: NFC, white space collapsed, stripped."""
    text = _WHITESPACE.sub(" ", unicodedata.normalize("NFC", redacted)).strip()
    return hashlib.sha256(text.encode()).hexdigest()


USE_VAULT_HINT = "this is state rather than memory: keep it in the vault (PUT /v1/vault/{key})"

_VALUE_NAME = r"[\w.\-/]{1,60}\s?[=:]\s{0,4}"
_COUNTER_LABEL = r"[\w \-]{0,40}\b(?:count|counter|total)\b[\w \-]{0,20}[=:]?\s?"
_COUNTER = re.compile(
    rf"(?:{_VALUE_NAME}|{_COUNTER_LABEL})?[+-]?\d[\d_.,]{{0,30}}\s?%?", re.IGNORECASE
)


def state_hints(content: str) -> tuple[str, ...]:
    """The advice to use the vault, if a content is state."""
    return (USE_VAULT_HINT,) if is_state(content) else ()


def is_state(content: str) -> bool:
    """Whether a content is a number, with or without a name, or a JSON object or array."""
    text = content.strip()
    if _COUNTER.fullmatch(text):
        return True
    if text[:1] + text[-1:] not in {"{}", "[]"}:
        return False
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
