"""Events on the message bus: streams, subjects and event bodies.

Events are hints and carry no content. Consumers compare versions with the stored state, so that
a repeated or late event is harmless.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from reverie.domain.core.ids import new_id

MEMORY_STREAM = "MEMORY"
DREAM_STREAM = "DREAM"
GIT_STREAM = "GIT"
DEAD_LETTER_STREAM = "DEAD"
ADVISORY_STREAM = "ADVISORY"


MEMORY_EVENTS: Final = (
    "remembered",
    "enriched",
    "edited",
    "superseded",
    "forgotten",
    "approved",
    "pinned",
    "unpinned",
    "archived",
    "restored",
    "promoted",
    "linked",
    "unlinked",
    "merged",
    "contradicted",
    "staled",
    "cleared",
    "task",
    "digesting",
    "digested",
)
"""What may happen to a memory. `remembered` also asks for the slow path to run (again).

`digesting` and `digested` tell of the dream over a scope: how far it is, and how it ended.
"""


class BusEvent(BaseModel):
    """A message on the bus. `tenant` is the inner number; the subject carries its name."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    v: Literal[1] = 1
    tenant: int


class MemoryEvent(BusEvent):
    """Something happened to a memory: one of `MEMORY_EVENTS`; of an edge, `id` is the edge's."""

    id: UUID
    version: int


class GitEvent(BusEvent):
    """A change was stored: `id` is its row, which holds the files. Or, without one, the anchors of
    a memory came after changes that may concern it."""

    id: UUID | None = None
    memory: UUID | None = None
    project: str


def memory_subject(tenant: str, event: str) -> str:
    """`memory.<tenant>.<event>`"""
    return f"memory.{tenant}.{event}"


def dream_subject(tenant: str, scope: str) -> str:
    """`dream.<tenant>.<scope hash>.requested`"""
    return f"dream.{tenant}.{hashlib.sha256(scope.encode()).hexdigest()[:16]}.requested"


MAINTENANCE_SUBJECT: Final = "dream.ALL.maintenance.requested"
"""Of no tenant: it wakes a worker, which looks first for a tenant whose maintenance is due."""


def git_subject(tenant: str, project: str) -> str:
    """`git.<tenant>.<project>.changed`; `project` is a slug."""
    return f"git.{tenant}.{project}.changed"


class OutgoingEvent(BaseModel):
    """A stored event on its way to the bus: `id` is the outbox row and the `Nats-Msg-Id`."""

    model_config = ConfigDict(frozen=True)

    id: UUID
    subject: str
    payload: str
    headers: dict[str, str]


def build_outgoing_event(
    tenant: int,
    subject: str,
    body: Mapping[str, object],
    headers: Mapping[str, str],
    id: UUID | None = None,
) -> OutgoingEvent:
    """An event as the outbox holds it; `id` is its row, a new one where it is not given."""
    payload = json.dumps({**body, "v": 1, "tenant": tenant}, separators=(",", ":"))
    return OutgoingEvent(id=id or new_id(), subject=subject, payload=payload, headers=dict(headers))
