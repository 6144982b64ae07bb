"""What maintenance works on: scopes, leases, runs, and the memories that a step reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from reverie.domain.core.ids import new_id


@dataclass(frozen=True)
class MaintenanceScope:
    """The maintained scopes of a tenant. `record_scope`: the scope of its run records."""

    tenant: int
    tenant_name: str
    scopes: tuple[str, ...] = ("*",)
    record_scope: str = "*"

    @property
    def is_whole_tenant(self) -> bool:
        """Whether it is the whole tenant."""
        return "*" in self.scopes


@dataclass(frozen=True)
class MaintenanceLease:
    """A worker's lease on the maintenance of a tenant.

    `attempts`: the number of starts since it last ended, this one included.
    """

    scope: MaintenanceScope
    epoch: int
    attempts: int


@dataclass(frozen=True)
class MaintenanceRun:
    """One run of tending as it is recorded. `epoch`: of the lease that it is under, else 0."""

    scope: MaintenanceScope
    worker: str
    epoch: int = 0
    id: UUID = field(default_factory=new_id)
    started: datetime = field(default_factory=partial(datetime.now, UTC))


@dataclass(frozen=True)
class ReflectionInput:
    """A memory as reflecting reads it."""

    id: UUID
    kind: str
    content: str


@dataclass(frozen=True)
class FrequentKey:
    """The active memory under a key, and how often the key was written."""

    id: UUID
    key: str
    versions: int


@dataclass(frozen=True)
class TierCandidate:
    """A memory that its use may move: the days of use, and the days since the last or the write."""

    id: UUID
    version: int
    kind: str
    scope: str
    tier: str
    days_used: int
    days_idle: float


@dataclass(frozen=True)
class ChangedTopic:
    """A topic that was added, changed its members, or was dissolved (then it has none)."""

    id: UUID
    name: str
    members: int


@dataclass(frozen=True)
class LongMemory:
    """A long memory without a summary."""

    id: UUID
    scope: str
    kind: str
    version: int
    content: str
