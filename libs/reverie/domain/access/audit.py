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
"""Of one call: a longer answer's rest is left out."""
MAX_SUBJECT_LENGTH = 200
_ID_FIELDS = ("id", "session", "event")
_LIST_FIELDS = ("items", "memories", "nodes")


@dataclass(frozen=True)
class AuditEntry:
    """One call. `who`: the agent, else the key; `action`: method and route; `subjects`: ids and
    names of what it was about; `client`: the program, as it calls itself."""

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
    """What a call was about: the names in its path, and the ids that its answer has."""
    subjects = dict.fromkeys(_redact_segment(part) for part in path.values())
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


def _redact_segment(part: str) -> str:
    """A part of a path, which may be anything, without credentials."""
    return part if _is_id(part) else redact(part[:MAX_SUBJECT_LENGTH]).text
