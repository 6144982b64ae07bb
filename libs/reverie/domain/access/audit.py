"""Entries of the audit log: who called what, on which ids, without content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.domain.redaction.redactor import redact

MAX_SUBJECTS = 500
"""Subjects that one entry lists at most."""
MAX_SUBJECT_LENGTH = 200
_ID_FIELDS = ("id", "session", "event")
_LIST_FIELDS = ("items", "memories", "nodes")


@dataclass(frozen=True)
class AuditEntry:
    """One call. `actor`: the agent, else the key. `action`: the method and route.

    `subjects`: the ids and names that the call touched. `client`: the User-Agent.
    """

    id: UUID
    at: datetime
    tenant: int
    key: str
    actor: str
    service: str
    action: str
    changes: bool
    status: int
    problem: str | None
    subjects: tuple[str, ...]
    trace_id: str | None
    client: str


def collect_subjects(path: Mapping[str, str], answer: Any) -> tuple[str, ...]:
    """The subjects of a call: the names in its path and the ids in its answer."""
    # A segment of a path may be anything, also a credential.
    subjects = dict.fromkeys(
        part if _is_id(part) else redact(part[:MAX_SUBJECT_LENGTH]).text for part in path.values()
    )
    if isinstance(answer, dict):
        ids: list[Any] = [answer.get(name) for name in _ID_FIELDS]
        lists = [answer.get(name) for name in _LIST_FIELDS]
        items = [item for value in lists if isinstance(value, list) for item in value]
        ids += [item.get("id") for item in items if isinstance(item, dict)]
        subjects |= dict.fromkeys(filter(_is_id, ids))
    return tuple(subjects)[:MAX_SUBJECTS]


def _is_id(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(UUID(value))
    except ValueError:
        return False
