"""The in-memory state of memories for tests, and edits of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from reverie.contracts.events import OutgoingEvent, build_outgoing_event, memory_subject
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Conflict, InvalidInput, NotFound, PreconditionFailed
from reverie.domain.core.kinds import ANCHOR_KINDS, CAUSAL_EDGE_KINDS, EdgeKind, Kind, Tier
from reverie.domain.core.memory import Memory, MemoryStatus, NewEdge
from reverie.store.memories.edits import ChangeResult, MemoryChange, MemoryVersion

EdgeKey = tuple[UUID, EdgeKind, UUID]


@dataclass(frozen=True)
class PastVersion:
    """A memory as it was until `known_to`: who changed it then, and why."""

    memory: Memory
    known_from: datetime
    known_to: datetime
    changed_by: str | None
    reason: str


@dataclass
class InMemoryTenant:
    """All that one tenant has; its values are replaced, never changed."""

    memories: dict[UUID, Memory] = field(default_factory=dict)
    known_from: dict[UUID, datetime] = field(default_factory=dict)
    past_versions: dict[UUID, tuple[PastVersion, ...]] = field(default_factory=dict)
    edges: dict[EdgeKey, float] = field(default_factory=dict)
    events: list[OutgoingEvent] = field(default_factory=list)

    def copy(self) -> InMemoryTenant:
        """A draft to write into, which the tenant becomes if all goes well."""
        return InMemoryTenant(
            dict(self.memories),
            dict(self.known_from),
            dict(self.past_versions),
            dict(self.edges),
            list(self.events),
        )

    def find(self, principal: Principal, memory: UUID) -> Memory | None:
        """The memory, unless it was forgotten or may not be read."""
        existing = self.memories.get(memory)
        if (
            existing is None
            or existing.status is MemoryStatus.DELETED
            or not principal.may_read(existing.scope)
        ):
            return None
        return existing

    def find_active(
        self, scope: str, key: str | None, content_hash: str, excluded: UUID | None = None
    ) -> Memory | None:
        """The memory that stands under a key, or with the content where there is no key."""
        for memory in self.memories.values():
            is_active = memory.status is MemoryStatus.ACTIVE and memory.id != excluded
            same_content = key is not None or memory.content_hash == content_hash
            if is_active and same_content and (memory.scope, memory.key) == (scope, key):
                return memory
        return None

    def add(self, memory: Memory) -> None:
        """A first version."""
        self.memories[memory.id] = memory
        self.known_from[memory.id] = memory.created_at

    def change(self, old: Memory, changed_by: str | None, reason: str, **fields: Any) -> Memory:
        """The next version of a memory; what it was is kept."""
        now = datetime.now(UTC)
        past = PastVersion(old, self.known_from[old.id], now, changed_by, reason)
        self.past_versions[old.id] = (*self.past_versions.get(old.id, ()), past)
        new = replace(old, version=old.version + 1, updated_at=now, **fields)
        self.memories[old.id] = new
        self.known_from[old.id] = now
        return new

    def link(self, src: UUID, edge: NewEdge) -> None:
        """An edge, or the greater weight on the one that stands. Raises `InvalidInput`."""
        if src == edge.to:
            raise InvalidInput("edges", "an edge would lead from the memory to itself")
        key = (src, edge.kind, edge.to)
        if edge.kind is EdgeKind.CAUSED_BY:
            key = (edge.to, EdgeKind.LED_TO, src)
        cause, effect = _cause_and_effect(key)
        if edge.kind in CAUSAL_EDGE_KINDS and self._leads_to(effect, cause):
            raise InvalidInput("edges", "an edge would close a causal cycle")
        if edge.kind is EdgeKind.DEPENDS_ON and self._waits_for(edge.to, src):
            raise InvalidInput(
                "edges", "an edge would close a ring of tasks that wait for each other"
            )
        self.edges[key] = max(edge.weight, self.edges.get(key, edge.weight))

    def _waits_for(self, task: UUID, other: UUID) -> bool:
        """Whether one task waits for another, over others, and both are tasks."""
        if any(self.memories[task_id].kind is not Kind.TASK for task_id in (task, other)):
            return False
        needed = [
            target
            for source, kind, target in self.edges
            if (source, kind) == (task, EdgeKind.DEPENDS_ON)
        ]
        return task == other or any(self._waits_for(task_id, other) for task_id in needed)

    def _leads_to(self, cause: UUID, effect: UUID) -> bool:
        """Whether causal edges lead from one to the other."""
        steps = [_cause_and_effect(key) for key in self.edges if key[1] in CAUSAL_EDGE_KINDS]
        reached, frontier = {cause}, {cause}
        while frontier:
            frontier = {end for start, end in steps if start in frontier} - reached
            reached |= frontier
        return effect in reached

    def unlink(self, memory: UUID) -> None:
        """Ends all edges of a memory."""
        self.edges = {k: w for k, w in self.edges.items() if memory not in (k[0], k[2])}

    def announce(
        self, principal: Principal, name: str, memory: Memory, headers: Mapping[str, str]
    ) -> OutgoingEvent:
        """Leaves an event about a memory."""
        body = {"id": str(memory.id), "version": memory.version}
        event = build_outgoing_event(
            principal.tenant, memory_subject(principal.tenant_name, name), body, headers
        )
        self.events.append(event)
        return event


class InMemoryState:
    """The tenants by number, which the twins of the store's classes share."""

    def __init__(self) -> None:
        self._tenants: dict[int, InMemoryTenant] = {}

    def get_tenant(self, principal: Principal) -> InMemoryTenant:
        """What the principal's tenant has."""
        return self._tenants.setdefault(principal.tenant, InMemoryTenant())

    def replace_tenant(self, principal: Principal, draft: InMemoryTenant) -> None:
        """Makes a draft what the tenant has."""
        self._tenants[principal.tenant] = draft


def _cause_and_effect(key: EdgeKey) -> tuple[UUID, UUID]:
    """Cause and effect of a causal edge."""
    src, kind, dst = key
    return (src, dst) if kind is EdgeKind.LED_TO else (dst, src)


_ANCHOR_REASON = "file and entity nodes are made from what memories touch"
_COPIED_COLUMNS = ("key", "content", "summary", "confidence", "pinned", "git", "metadata")
_COLUMN_PARSERS: dict[str, Callable[[Any], Any]] = {
    "kind": Kind,
    "tier": Tier,
    "status": MemoryStatus,
    "valid_from": datetime.fromisoformat,
    "valid_to": datetime.fromisoformat,
    "superseded_by": UUID,
}


class InMemoryEdits:
    """`store.edits.Edits` for one process, over the state that the memories are in."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def change(
        self, principal: Principal, memory: UUID, change: MemoryChange, headers: Mapping[str, str]
    ) -> ChangeResult:
        """Carries out a change.

        Raises `NotFound`, `Forbidden`, `PreconditionFailed`, `Conflict`, `InvalidInput`.
        """
        draft = self._state.get_tenant(principal).copy()
        old = _find_changeable(draft, principal, memory, change.expected_version)
        fields = _parse_columns(change.fields)
        changed = replace(old, **fields)
        if changed == old:
            return ChangeResult(old.version, [])
        if twin := _find_twin(draft, changed):
            raise Conflict(
                f"the active memory {twin.id} has this content or key already",
                {"id": str(twin.id)},
            )
        new = draft.change(old, principal.actor, change.why, **fields)
        if new.status is MemoryStatus.DELETED:
            draft.unlink(memory)
        events = _announce_change(draft, principal, change.event, old, new, headers)
        self._state.replace_tenant(principal, draft)
        return ChangeResult(new.version, events)

    async def history(
        self, principal: Principal, memory: UUID, below: int, limit: int
    ) -> list[MemoryVersion]:
        """Versions newest first, below the version `below`."""
        tenant = self._state.get_tenant(principal)
        current = tenant.find(principal, memory)
        if current is None:
            return []
        past_versions = tenant.past_versions.get(memory, ())
        authors = {
            past.memory.version + 1: (past.changed_by, past.reason) for past in past_versions
        }
        authors[1] = (current.agent, "remembered")
        versions = [
            *(
                _build_version(past.memory, past.known_from, past.known_to, authors)
                for past in past_versions
            ),
            _build_version(current, tenant.known_from[memory], None, authors),
        ]
        return [version for version in reversed(versions) if version.version < below][:limit]

    async def version(
        self, principal: Principal, memory: UUID, version: int
    ) -> tuple[str, dict[str, Any]]:
        """The content and the other columns of an earlier version. Raises `NotFound`."""
        tenant = self._state.get_tenant(principal)
        if tenant.find(principal, memory):
            for past in tenant.past_versions.get(memory, ()):
                if past.memory.version == version:
                    return past.memory.content, _dump_columns(past)
        raise NotFound("version", f"{version} of memory {memory}")


def _find_changeable(
    tenant: InMemoryTenant, principal: Principal, memory: UUID, expected: int | None
) -> Memory:
    """The memory, if it may be changed as it stands."""
    existing = tenant.find(principal, memory)
    if existing is None:
        raise NotFound("memory", str(memory))
    principal.check_write(existing.scope)
    if existing.kind in ANCHOR_KINDS:
        raise InvalidInput("id", _ANCHOR_REASON)
    if expected not in {None, existing.version}:
        raise PreconditionFailed(existing.version)
    return existing


def _find_twin(tenant: InMemoryTenant, new: Memory) -> Memory | None:
    """Another active memory that has the key or content of what is to be active."""
    if new.status is not MemoryStatus.ACTIVE:
        return None
    return tenant.find_active(new.scope, new.key, new.content_hash, excluded=new.id)


def _announce_change(
    draft: InMemoryTenant,
    principal: Principal,
    name: str,
    old: Memory,
    new: Memory,
    headers: Mapping[str, str],
) -> list[OutgoingEvent]:
    """The events of a change: other content, or another status, is to be enriched again."""
    needs_enrichment = (new.content, new.status) != (old.content, old.status)
    names = (
        [name, "remembered"]
        if needs_enrichment and new.status is not MemoryStatus.DELETED
        else [name]
    )
    return [draft.announce(principal, event_name, new, headers) for event_name in names]


def _parse_columns(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a memory that columns by name change."""
    parsed = {name: fields[name] for name in _COPIED_COLUMNS if name in fields}
    for name, parse in _COLUMN_PARSERS.items():
        if name in fields:
            parsed[name] = None if fields[name] is None else parse(fields[name])
    if "tags" in fields:
        parsed["tags"] = tuple(sorted(set(fields["tags"])))
    if "hash" in fields:
        parsed["content_hash"] = fields["hash"].removeprefix("\\x")
    return parsed


def _build_version(
    memory: Memory,
    known_from: datetime,
    known_to: datetime | None,
    authors: Mapping[int, tuple[str | None, str]],
) -> MemoryVersion:
    author, reason = authors[memory.version]
    return MemoryVersion(
        memory.version,
        memory.content,
        memory.status.value,
        memory.kind.value,
        memory.key,
        list(memory.tags),
        known_from,
        known_to,
        author,
        reason,
    )


def _dump_columns(past: PastVersion) -> dict[str, Any]:
    """The columns of a version by name, as JSON has them."""
    memory = past.memory
    plain = ("scope", *(name for name in _COPIED_COLUMNS if name != "content"), "agent", "source")
    return {
        **{name: getattr(memory, name) for name in plain},
        "kind": memory.kind.value,
        "tier": memory.tier.value,
        "hash": "\\x" + memory.content_hash,
        "tags": list(memory.tags),
        "session": _uuid_text(memory.session),
        "superseded_by": _uuid_text(memory.superseded_by),
        "valid_from": _iso_time(memory.valid_from),
        "valid_to": _iso_time(memory.valid_to),
        "created": _iso_time(memory.created_at),
        "updated": _iso_time(memory.updated_at),
    }


def _uuid_text(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def _iso_time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()
