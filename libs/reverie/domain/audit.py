"""Who read and changed what, as the audit log keeps it: names and ids, no content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from reverie.domain.redaction import redact

AuditMode = Literal["off", "writes", "all"]

MOST_SUBJECTS = 500
"""Of one call: a longer answer's rest is left out."""
LONGEST_NAME = 200
_ONE = ("id", "session", "event")
_MANY = ("items", "memories", "nodes")


@dataclass(frozen=True)
class Audited:
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


def subjects_of(path: Mapping[str, str], answer: Any) -> tuple[str, ...]:
    """What a call was about: the names in its path, and the ids that its answer has."""
    found = dict.fromkeys(_name(part) for part in path.values())
    found |= dict.fromkeys(_ids_in(answer))
    return tuple(found)[:MOST_SUBJECTS]


def _ids_in(answer: Any) -> Iterator[str]:
    if not isinstance(answer, dict):
        return
    yield from (answer[name] for name in _ONE if _is_id(answer.get(name)))
    for name in _MANY:
        listed = answer.get(name)
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and _is_id(one.get("id")):
                yield one["id"]


def _is_id(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(UUID(value))
    except ValueError:
        return False


def _name(part: str) -> str:
    """A part of a path, which may be anything, without credentials."""
    return part if _is_id(part) else redact(part[:LONGEST_NAME]).text
