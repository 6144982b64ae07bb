"""Memories in memory: the twin of the store's, with the same answers and the same errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.edges import EdgeKind
from reverie.domain.errors import Conflict, Invalid, NotFound, ReverieError, Unavailable
from reverie.domain.ids import part_of_id
from reverie.domain.kinds import ANCHORS, Kind
from reverie.domain.memory import Memory, NewMemory, Outcome, Status, Written
from reverie.store.memories import NEIGHBOURS, ListFilter, Near
from reverie.testing.memory_state import MemoryState, Tenant

_SURER = 0.05
_LABEL = 120


class MemoryMemories:
    """`store.memories.Memories` for one process; nothing enriches what it holds."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state
        self._requests: dict[tuple[int, str], list[Written | ReverieError]] = {}

    async def remember(
        self,
        who: Principal,
        items: Sequence[NewMemory],
        headers: Mapping[str, str],
        request: str | None = None,
    ) -> list[Written | ReverieError]:
        """Writes each item or says why not, in their order; those of a `request` once."""
        if request is None:
            return [self._remember(who, new, headers) for new in items]
        named = (who.tenant, request)
        if named not in self._requests:
            done = [self._remember(who, new, headers) for new in items]
            if all(isinstance(one, ReverieError) for one in done):
                return done
            self._requests[named] = done
        return self._requests[named]

    def _remember(
        self, who: Principal, new: NewMemory, headers: Mapping[str, str]
    ) -> Written | ReverieError:
        draft = self._state.of(who).copy()
        try:
            written = _write(draft, who, new, headers)
        except ReverieError as error:
            return error
        self._state.keep(who, draft)
        return written

    async def get(self, who: Principal, memory: UUID) -> Memory:
        """One memory. Raises `NotFound` also where the key may not read it."""
        found = self._state.of(who).find(who, memory)
        if found is None:
            raise NotFound("memory", str(memory))
        return found

    async def resolve(self, who: Principal, text: str) -> UUID:
        """The id that a full or short form means. Raises `NotFound` or `Invalid`."""
        if (part := part_of_id(text)) is None:
            return _uuid(text)
        tenant = self._state.of(who)
        found = [i for i in tenant.memories if part.means(i) and tenant.find(who, i)]
        if not found:
            raise NotFound("memory", text)
        if len(found) > 1:
            told = ", ".join(str(one) for one in sorted(found, reverse=True))
            raise Invalid("id", f"{text} means several memories, give more of it: {told}")
        return found[0]

    async def shown(
        self, who: Principal, named: UUID, limit: int = NEIGHBOURS
    ) -> tuple[Memory, list[Near]]:
        """A memory and those one edge away that the key may read, strongest first."""
        memory, tenant = await self.get(who, named), self._state.of(who)
        found = [
            _near(other, kind, direction, weight)
            for (src, kind, dst), weight in tenant.edges.items()
            for start, end, direction in ((src, dst, "out"), (dst, src, "in"))
            if start == named and (other := tenant.find(who, end))
        ]
        return memory, sorted(found, key=lambda near: (-near.weight, near.id))[:limit]

    async def page(
        self, who: Principal, below: UUID | None, limit: int, only: ListFilter
    ) -> list[Memory]:
        """Memories newest first, below the id `below`; anchors only where their kind is asked."""
        memories = sorted(self._state.of(who).memories.values(), key=lambda m: m.id, reverse=True)
        found = (
            memory
            for memory in memories
            if (below is None or memory.id < below)
            and who.may_read(memory.scope)
            and _fits(memory, only)
        )
        return list(islice(found, limit))


def _write(draft: Tenant, who: Principal, new: NewMemory, headers: Mapping[str, str]) -> Written:
    for edge in new.edges:
        if draft.find(who, edge.to) is None:
            raise Invalid("edges", f"there is no memory {edge.to} to link to")
    old = draft.active(new.scope, new.key, new.content_hash)
    if old and old.content_hash == new.content_hash:
        return _know_again(draft, who, old, new, headers)
    if old and new.supersede_reason is None:
        raise Conflict(
            f"key {new.key!r} is active in {new.scope}: supersede_reason would replace it",
            _current(old) if who.may_read(old.scope) else None,
        )
    if new.id in draft.memories:
        raise Unavailable("the memory", "many writers change it at once; try again")
    made = _made(new, old)
    draft.add(made)
    if old:
        _supersede(draft, who, old, new, headers)
    for edge in new.edges:
        draft.link(new.id, edge)
    event = draft.announce(who, "remembered", made, headers)
    return Written(new.id, Outcome.SUPERSEDED if old else Outcome.CREATED, 1, event.id)


def _know_again(
    draft: Tenant, who: Principal, old: Memory, new: NewMemory, headers: Mapping[str, str]
) -> Written:
    """A memory said again: surer, with what it lacked; a place in git is a new version."""
    placed = old.git is None and new.git is not None
    if placed:
        old = draft.change(old, new.agent, "its place in git became known", git=new.git)
    draft.memories[old.id] = replace(
        old,
        confidence=round(min(1.0, max(old.confidence, new.confidence) + _SURER), 4),
        pinned=old.pinned or new.pinned,
        summary=new.summary if old.summary is None else old.summary,
        metadata={**new.metadata, **old.metadata},
        tags=tuple(sorted({*old.tags, *new.tags})),
        turns=tuple(sorted({*old.turns, *new.turns})),
    )
    for edge in new.edges:
        draft.link(old.id, edge)
    event = draft.announce(who, "remembered", old, headers).id if placed else None
    return Written(old.id, Outcome.DUPLICATE, old.version, event)


def _supersede(
    draft: Tenant, who: Principal, old: Memory, new: NewMemory, headers: Mapping[str, str]
) -> None:
    ended = draft.change(
        old,
        new.agent,
        str(new.supersede_reason),
        status=Status.SUPERSEDED,
        superseded_by=new.id,
        valid_to=old.valid_to or datetime.now(UTC),
    )
    draft.edges[new.id, EdgeKind.SUPERSEDES, old.id] = 1.0
    draft.announce(who, "superseded", ended, headers)


def _made(new: NewMemory, old: Memory | None) -> Memory:
    """The first version; a soft one is as sure and as pinned as what it supersedes."""
    now = datetime.now(UTC)
    soft = old if new.soft else None
    return Memory(
        id=new.id,
        scope=new.scope,
        kind=new.kind,
        content=new.content,
        content_hash=new.content_hash,
        tier=new.tier,
        status=Status.ACTIVE,
        version=1,
        confidence=round(max(new.confidence, soft.confidence if soft else 0.0), 4),
        pinned=new.pinned or bool(soft and soft.pinned),
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


def _current(memory: Memory) -> dict[str, Any]:
    return {"id": str(memory.id), "content": memory.content, "version": memory.version}


def _near(memory: Memory, kind: EdgeKind, direction: str, weight: float) -> Near:
    short = memory.content[:_LABEL] if memory.key is None else memory.key
    label = memory.content if memory.kind is Kind.FILE else short
    return Near(memory.id, memory.kind.value, label, kind.value, direction, weight)


def _fits(memory: Memory, only: ListFilter) -> bool:
    kinds = only.kinds
    kind = memory.kind not in ANCHORS if kinds is None else memory.kind.value in kinds
    return (
        kind
        and memory.status.value in only.status
        and only.scope in {None, memory.scope}
        and (only.tag is None or only.tag in memory.tags)
        and only.session in {None, memory.session}
        and only.key in {None, memory.key}
        and _holds(memory, only.valid_at)
    )


def _holds(memory: Memory, at: datetime | None) -> bool:
    """Whether a memory is said to be true at a moment; None asks for nothing."""
    if at is None:
        return True
    begun = memory.valid_from is None or memory.valid_from <= at
    return begun and (memory.valid_to is None or at < memory.valid_to)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Invalid("id", f"{text[:40]!r} is not an id") from None
