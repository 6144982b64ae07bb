"""What memories in memory are kept in: per tenant the rows, their pasts, open edges and events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from reverie.contracts.events import Outgoing, memory_subject, outgoing
from reverie.domain.access import Principal
from reverie.domain.edges import CAUSAL, EdgeKind
from reverie.domain.errors import Invalid
from reverie.domain.kinds import Kind
from reverie.domain.memory import Memory, NewEdge, Status

EdgeKey = tuple[UUID, EdgeKind, UUID]


@dataclass(frozen=True)
class Kept:
    """A memory as it was until `known_to`: who changed it then, and why."""

    memory: Memory
    known_from: datetime
    known_to: datetime
    who: str | None
    why: str


@dataclass
class Tenant:
    """All that one tenant has; its values are replaced, never changed."""

    memories: dict[UUID, Memory] = field(default_factory=dict)
    known_from: dict[UUID, datetime] = field(default_factory=dict)
    kept: dict[UUID, tuple[Kept, ...]] = field(default_factory=dict)
    edges: dict[EdgeKey, float] = field(default_factory=dict)
    events: list[Outgoing] = field(default_factory=list)

    def copy(self) -> Tenant:
        """A draft to write into, which the tenant becomes if all goes well."""
        return Tenant(
            dict(self.memories),
            dict(self.known_from),
            dict(self.kept),
            dict(self.edges),
            list(self.events),
        )

    def find(self, who: Principal, memory: UUID) -> Memory | None:
        """The memory, unless it was forgotten or may not be read."""
        found = self.memories.get(memory)
        if found is None or found.status is Status.DELETED or not who.may_read(found.scope):
            return None
        return found

    def active(
        self, scope: str, key: str | None, content_hash: str, but: UUID | None = None
    ) -> Memory | None:
        """The memory that stands under a key, or with the content where there is no key."""
        for memory in self.memories.values():
            stands = memory.status is Status.ACTIVE and memory.id != but
            same = key is not None or memory.content_hash == content_hash
            if stands and same and (memory.scope, memory.key) == (scope, key):
                return memory
        return None

    def add(self, memory: Memory) -> None:
        """A first version."""
        self.memories[memory.id] = memory
        self.known_from[memory.id] = memory.created_at

    def change(self, old: Memory, who: str | None, why: str, **fields: Any) -> Memory:
        """The next version of a memory; what it was is kept."""
        now = datetime.now(UTC)
        was = Kept(old, self.known_from[old.id], now, who, why)
        self.kept[old.id] = (*self.kept.get(old.id, ()), was)
        new = replace(old, version=old.version + 1, updated_at=now, **fields)
        self.memories[old.id] = new
        self.known_from[old.id] = now
        return new

    def link(self, src: UUID, edge: NewEdge) -> None:
        """An edge, or the greater weight on the one that stands. Raises `Invalid`."""
        if src == edge.to:
            raise Invalid("edges", "an edge would lead from the memory to itself")
        key = (src, edge.kind, edge.to)
        if edge.kind is EdgeKind.CAUSED_BY:
            key = (edge.to, EdgeKind.LED_TO, src)
        cause, effect = _ends(key)
        if edge.kind in CAUSAL and self._leads(effect, cause):
            raise Invalid("edges", "an edge would close a causal cycle")
        if edge.kind is EdgeKind.DEPENDS_ON and self._waits(edge.to, src):
            raise Invalid("edges", "an edge would close a ring of tasks that wait for each other")
        self.edges[key] = max(edge.weight, self.edges.get(key, edge.weight))

    def _waits(self, task: UUID, other: UUID) -> bool:
        """Whether one task waits for another, over others, and both are tasks."""
        if any(self.memories[one].kind is not Kind.TASK for one in (task, other)):
            return False
        needed = [to for of, kind, to in self.edges if (of, kind) == (task, EdgeKind.DEPENDS_ON)]
        return task == other or any(self._waits(one, other) for one in needed)

    def _leads(self, cause: UUID, effect: UUID) -> bool:
        """Whether causal edges lead from one to the other."""
        steps = [_ends(key) for key in self.edges if key[1] in CAUSAL]
        reached, fresh = {cause}, {cause}
        while fresh:
            fresh = {end for start, end in steps if start in fresh} - reached
            reached |= fresh
        return effect in reached

    def unlink(self, memory: UUID) -> None:
        """Ends all edges of a memory."""
        self.edges = {k: w for k, w in self.edges.items() if memory not in (k[0], k[2])}

    def announce(
        self, who: Principal, name: str, memory: Memory, headers: Mapping[str, str]
    ) -> Outgoing:
        """Leaves an event about a memory."""
        body = {"id": str(memory.id), "version": memory.version}
        event = outgoing(who.tenant, memory_subject(who.tenant_name, name), body, headers)
        self.events.append(event)
        return event


class MemoryState:
    """The tenants by number, which the twins of the store's classes share."""

    def __init__(self) -> None:
        self._tenants: dict[int, Tenant] = {}

    def of(self, who: Principal) -> Tenant:
        """What the principal's tenant has."""
        return self._tenants.setdefault(who.tenant, Tenant())

    def keep(self, who: Principal, draft: Tenant) -> None:
        """Makes a draft what the tenant has."""
        self._tenants[who.tenant] = draft


def _ends(key: EdgeKey) -> tuple[UUID, UUID]:
    """Cause and effect of a causal edge."""
    src, kind, dst = key
    return (src, dst) if kind is EdgeKind.LED_TO else (dst, src)
