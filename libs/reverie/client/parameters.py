"""Types of the keyword parameters of client calls that take many: `TypedDict`s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict
from uuid import UUID


class RememberFields(TypedDict, total=False):
    """The fields of a memory besides its content.

    `confidence`: 0 to 1; `edges`: `{"to": id, "type": name}` each. `supersede_reason` (or `soft`)
    is needed if another content is active under the `key`.
    """

    kind: str
    scope: str
    key: str
    supersede_reason: str
    soft: bool
    tags: Sequence[str]
    session: UUID | str
    edges: Sequence[Mapping[str, Any]]
    confidence: float
    tier: Literal["hot", "warm", "cold"]
    pinned: bool
    valid_from: datetime
    valid_to: datetime
    git: Mapping[str, Any]
    metadata: Mapping[str, Any]
    summary: str
    steps: Sequence[str]


class RecallFields(TypedDict, total=False):
    """Beside the question. `limit`: memories, at most 100; `budget_tokens`: of all together.

    `depth`: edges that are followed, 0 to 5; `as_of`: what was known then; `valid_at`: what was
    true then.
    """

    scopes: Sequence[str]
    project: str
    linked_projects: bool
    limit: int
    budget_tokens: int
    depth: int
    kinds: Sequence[str]
    tiers: Sequence[str]
    tags: Sequence[str]
    files: Sequence[str]
    min_confidence: float
    since: datetime
    until: datetime
    include: Sequence[Literal["turns", "archived"]]
    session: UUID | str
    as_of: datetime
    valid_at: datetime
