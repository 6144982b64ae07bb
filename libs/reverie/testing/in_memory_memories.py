"""An in-memory memory store for tests, with the answers and errors of the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Conflict, InvalidInput, NotFound, ReverieError, Unavailable
from reverie.domain.core.ids import parse_id_fragment
from reverie.domain.core.kinds import ANCHOR_KINDS, EdgeKind, Kind
from reverie.domain.core.memory import Memory, MemoryStatus, NewMemory, WriteOutcome, WriteResult
from reverie.store.memories.memories import NEIGHBOUR_LIMIT, ListFilter, MemoryNeighbour
from reverie.testing.in_memory_edits import InMemoryState, InMemoryTenant

_CONFIDENCE_STEP = 0.05
_MAX_LABEL_CHARS = 120


class InMemoryMemories:
    """`store.memories.Memories` for one process; nothing enriches what it holds."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state
        self._requests: dict[tuple[int, str], list[WriteResult | ReverieError]] = {}

    async def remember(
        self,
        principal: Principal,
        items: Sequence[NewMemory],
        headers: Mapping[str, str],
        request: str | None = None,
    ) -> list[WriteResult | ReverieError]:
        """Writes each item or says why not, in their order; those of a `request` once."""
        if request is None:
            return [self._remember(principal, new, headers) for new in items]
        request_key = (principal.tenant, request)
        if request_key not in self._requests:
            outcomes = [self._remember(principal, new, headers) for new in items]
            if all(isinstance(outcome, ReverieError) for outcome in outcomes):
                return outcomes
            self._requests[request_key] = outcomes
        return self._requests[request_key]

    def _remember(
        self, principal: Principal, new: NewMemory, headers: Mapping[str, str]
    ) -> WriteResult | ReverieError:
        draft = self._state.get_tenant(principal).copy()
        try:
            written = _write_memory(draft, principal, new, headers)
        except ReverieError as error:
            return error
        self._state.replace_tenant(principal, draft)
        return written

    async def get(self, principal: Principal, memory: UUID) -> Memory:
        """One memory. Raises `NotFound` also where the key may not read it."""
        existing = self._state.get_tenant(principal).find(principal, memory)
        if existing is None:
            raise NotFound("memory", str(memory))
        return existing

    async def resolve(self, principal: Principal, text: str) -> UUID:
        """The id that a full or short form means. Raises `NotFound` or `InvalidInput`."""
        if (part := parse_id_fragment(text)) is None:
            return _parse_uuid(text)
        tenant = self._state.get_tenant(principal)
        matches = [
            memory_id
            for memory_id in tenant.memories
            if part.matches(memory_id) and tenant.find(principal, memory_id)
        ]
        if not matches:
            raise NotFound("memory", text)
        if len(matches) > 1:
            ids = ", ".join(str(match) for match in sorted(matches, reverse=True))
            raise InvalidInput("id", f"{text} means several memories, give more of it: {ids}")
        return matches[0]

    async def get_with_neighbours(
        self, principal: Principal, memory_id: UUID, limit: int = NEIGHBOUR_LIMIT
    ) -> tuple[Memory, list[MemoryNeighbour]]:
        """A memory and those one edge away that the key may read, strongest first."""
        memory, tenant = await self.get(principal, memory_id), self._state.get_tenant(principal)
        neighbours = [
            _build_neighbour(other, kind, direction, weight)
            for (src, kind, dst), weight in tenant.edges.items()
            for start, end, direction in ((src, dst, "out"), (dst, src, "in"))
            if start == memory_id and (other := tenant.find(principal, end))
        ]
        return memory, sorted(neighbours, key=lambda neighbour: (-neighbour.weight, neighbour.id))[
            :limit
        ]

    async def page(
        self, principal: Principal, below: UUID | None, limit: int, only: ListFilter
    ) -> list[Memory]:
        """Memories newest first, below the id `below`; anchors only where their kind is asked."""
        memories = sorted(
            self._state.get_tenant(principal).memories.values(),
            key=lambda item: item.id,
            reverse=True,
        )
        matches = (
            memory
            for memory in memories
            if (below is None or memory.id < below)
            and principal.may_read(memory.scope)
            and _matches_filter(memory, only)
        )
        return list(islice(matches, limit))


def _write_memory(
    draft: InMemoryTenant, principal: Principal, new: NewMemory, headers: Mapping[str, str]
) -> WriteResult:
    for edge in new.edges:
        if draft.find(principal, edge.to) is None:
            raise InvalidInput("edges", f"there is no memory {edge.to} to link to")
    old = draft.find_active(new.scope, new.key, new.content_hash)
    if old and old.content_hash == new.content_hash:
        return _reinforce(draft, principal, old, new, headers)
    if old and new.supersede_reason is None:
        raise Conflict(
            f"key {new.key!r} is active in {new.scope}: supersede_reason would replace it",
            _describe_current(old) if principal.may_read(old.scope) else None,
        )
    if new.id in draft.memories:
        raise Unavailable("the memory", "many writers change it at once; try again")
    created = _build_memory(new, old)
    draft.add(created)
    if old:
        _supersede(draft, principal, old, new, headers)
    for edge in new.edges:
        draft.link(new.id, edge)
    event = draft.announce(principal, "remembered", created, headers)
    return WriteResult(
        new.id, WriteOutcome.SUPERSEDED if old else WriteOutcome.CREATED, 1, event.id
    )


def _reinforce(
    draft: InMemoryTenant,
    principal: Principal,
    old: Memory,
    new: NewMemory,
    headers: Mapping[str, str],
) -> WriteResult:
    """A memory said again: surer, with what it lacked; a place in git is a new version."""
    gained_git = old.git is None and new.git is not None
    if gained_git:
        old = draft.change(old, new.agent, "its place in git became known", git=new.git)
    draft.memories[old.id] = replace(
        old,
        confidence=round(min(1.0, max(old.confidence, new.confidence) + _CONFIDENCE_STEP), 4),
        pinned=old.pinned or new.pinned,
        summary=new.summary if old.summary is None else old.summary,
        metadata={**new.metadata, **old.metadata},
        tags=tuple(sorted({*old.tags, *new.tags})),
        turns=tuple(sorted({*old.turns, *new.turns})),
    )
    for edge in new.edges:
        draft.link(old.id, edge)
    event = draft.announce(principal, "remembered", old, headers).id if gained_git else None
    return WriteResult(old.id, WriteOutcome.DUPLICATE, old.version, event)


def _supersede(
    draft: InMemoryTenant,
    principal: Principal,
    old: Memory,
    new: NewMemory,
    headers: Mapping[str, str],
) -> None:
    ended = draft.change(
        old,
        new.agent,
        str(new.supersede_reason),
        status=MemoryStatus.SUPERSEDED,
        superseded_by=new.id,
        valid_to=old.valid_to or datetime.now(UTC),
    )
    draft.edges[new.id, EdgeKind.SUPERSEDES, old.id] = 1.0
    draft.announce(principal, "superseded", ended, headers)


def _build_memory(new: NewMemory, old: Memory | None) -> Memory:
    """The first version; a soft one is as sure and as pinned as what it supersedes."""
    now = datetime.now(UTC)
    inherited = old if new.soft else None
    return Memory(
        id=new.id,
        scope=new.scope,
        kind=new.kind,
        content=new.content,
        content_hash=new.content_hash,
        tier=new.tier,
        status=MemoryStatus.ACTIVE,
        version=1,
        confidence=round(max(new.confidence, inherited.confidence if inherited else 0.0), 4),
        pinned=new.pinned or bool(inherited and inherited.pinned),
        created_at=now,
        updated_at=now,
        key=new.key,
        summary=new.summary,
        tags=tuple(sorted(set(new.tags))),
        session=new.session,
        agent=new.agent,
        source=new.source,
        turns=tuple(sorted(set(new.turns))),
        git=new.git,
        metadata=dict(new.metadata),
        valid_from=new.valid_from,
        valid_to=new.valid_to,
        enriched=False,
    )


def _describe_current(memory: Memory) -> dict[str, Any]:
    return {"id": str(memory.id), "content": memory.content, "version": memory.version}


def _build_neighbour(
    memory: Memory, kind: EdgeKind, direction: str, weight: float
) -> MemoryNeighbour:
    short = memory.content[:_MAX_LABEL_CHARS] if memory.key is None else memory.key
    label = memory.content if memory.kind is Kind.FILE else short
    return MemoryNeighbour(memory.id, memory.kind.value, label, kind.value, direction, weight)


def _matches_filter(memory: Memory, filters: ListFilter) -> bool:
    kinds = filters.kinds
    kind_matches = memory.kind not in ANCHOR_KINDS if kinds is None else memory.kind.value in kinds
    return (
        kind_matches
        and memory.status.value in filters.status
        and filters.scope in {None, memory.scope}
        and (filters.tag is None or filters.tag in memory.tags)
        and filters.session in {None, memory.session}
        and filters.key in {None, memory.key}
        and _is_valid_at(memory, filters.valid_at)
    )


def _is_valid_at(memory: Memory, at: datetime | None) -> bool:
    """Whether a memory is said to be true at a moment; None asks for nothing."""
    if at is None:
        return True
    has_begun = memory.valid_from is None or memory.valid_from <= at
    return has_begun and (memory.valid_to is None or at < memory.valid_to)


def _parse_uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput("id", f"{text[:40]!r} is not an id") from None
