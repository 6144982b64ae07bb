"""Entries of the audit log: who called what, on which ids, without content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from reverie.domain.redaction.redactor import redact

AuditMode = Literal["off", "writes", "all"]

MAX_SUBJECTS = 500
"""Subjects that one entry lists at most."""
MAX_SUBJECT_LENGTH = 200
_ID_FIELDS = ("id", "session", "event")
_LIST_FIELDS = ("items", "memories", "nodes")


@dataclass(frozen=True)
class AuditEntry:
    """One call. `who` is the agent, else the key; `action` the method and route; `subjects` the ids
    and names that the call touched; `client` the User-Agent."""

    id: UUID
    at: datetime
    tenant: int
    key: str
    who: str
    service: str
    action: str
    changes: bool
    status: int
    problem: str | None
    subjects: tuple[str, ...]
    trace: str | None
    client: str


def collect_subjects(path: Mapping[str, str], answer: Any) -> tuple[str, ...]:
    """The subjects of a call: the names in its path and the ids in its answer."""
    # A segment of a path may be anything, also a credential.
    subjects = dict.fromkeys(
        part if _is_id(part) else redact(part[:MAX_SUBJECT_LENGTH]).text for part in path.values()
    )
    subjects |= dict.fromkeys(_collect_ids(answer))
    return tuple(subjects)[:MAX_SUBJECTS]


def _collect_ids(answer: Any) -> Iterator[str]:
    if not isinstance(answer, dict):
        return
    yield from (answer[name] for name in _ID_FIELDS if _is_id(answer.get(name)))
    for name in _LIST_FIELDS:
        items = answer.get(name)
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict) and _is_id(item.get("id")):
                yield item["id"]


def _is_id(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(UUID(value))
    except ValueError:
        return False
