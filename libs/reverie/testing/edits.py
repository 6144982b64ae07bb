"""Changes of memories in memory: the twin of the store's edits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.contracts.events import Outgoing
from reverie.domain.access import Principal
from reverie.domain.errors import Conflict, Invalid, Moved, NotFound
from reverie.domain.kinds import ANCHORS, Kind, Tier
from reverie.domain.memory import Memory, Status
from reverie.store.edits import Change, Changed, Version
from reverie.testing.memory_state import Kept, MemoryState, Tenant

_MADE = "file and entity nodes are made from what memories touch"
_AS_THEY_ARE = ("key", "content", "summary", "confidence", "pinned", "git", "metadata")
_READ: dict[str, Callable[[Any], Any]] = {
    "kind": Kind,
    "tier": Tier,
    "status": Status,
    "valid_from": datetime.fromisoformat,
    "valid_to": datetime.fromisoformat,
    "superseded_by": UUID,
}


class MemoryEdits:
    """`store.edits.Edits` for one process, over the state that the memories are in."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def change(
        self, who: Principal, memory: UUID, change: Change, headers: Mapping[str, str]
    ) -> Changed:
        """Carries out a change. Raises `NotFound`, `Forbidden`, `Moved`, `Conflict`, `Invalid`."""
        draft = self._state.of(who).copy()
        old = _changeable(draft, who, memory, change.expected)
        fields = _columns(change.fields)
        wanted = replace(old, **fields)
        if wanted == old:
            return Changed(old.version, [])
        if twin := _twin(draft, wanted):
            raise Conflict(
                f"the active memory {twin.id} has this content or key already",
                {"id": str(twin.id)},
            )
        new = draft.change(old, who.actor, change.why, **fields)
        if new.status is Status.DELETED:
            draft.unlink(memory)
        events = _announced(draft, who, change.event, old, new, headers)
        self._state.keep(who, draft)
        return Changed(new.version, events)

    async def history(self, who: Principal, memory: UUID, below: int, limit: int) -> list[Version]:
        """Versions newest first, below the version `below`."""
        tenant = self._state.of(who)
        now = tenant.find(who, memory)
        if now is None:
            return []
        kept = tenant.kept.get(memory, ())
        makers = {was.memory.version + 1: (was.who, was.why) for was in kept}
        makers[1] = (now.agent, "remembered")
        versions = [
            *(_version(was.memory, was.known_from, was.known_to, makers) for was in kept),
            _version(now, tenant.known_from[memory], None, makers),
        ]
        return [one for one in reversed(versions) if one.version < below][:limit]

    async def version(
        self, who: Principal, memory: UUID, version: int
    ) -> tuple[str, dict[str, Any]]:
        """The content and the other columns of an earlier version. Raises `NotFound`."""
        tenant = self._state.of(who)
        if tenant.find(who, memory):
            for was in tenant.kept.get(memory, ()):
                if was.memory.version == version:
                    return was.memory.content, _state(was)
        raise NotFound("version", f"{version} of memory {memory}")


def _changeable(tenant: Tenant, who: Principal, memory: UUID, expected: int | None) -> Memory:
    """The memory, if it may be changed as it stands."""
    found = tenant.find(who, memory)
    if found is None:
        raise NotFound("memory", str(memory))
    who.check_write(found.scope)
    if found.kind in ANCHORS:
        raise Invalid("id", _MADE)
    if expected not in {None, found.version}:
        raise Moved(found.version)
    return found


def _twin(tenant: Tenant, new: Memory) -> Memory | None:
    """Another active memory that has the key or content of what is to be active."""
    if new.status is not Status.ACTIVE:
        return None
    return tenant.active(new.scope, new.key, new.content_hash, but=new.id)


def _announced(
    draft: Tenant,
    who: Principal,
    name: str,
    old: Memory,
    new: Memory,
    headers: Mapping[str, str],
) -> list[Outgoing]:
    """The events of a change: other content, or another status, is to be enriched again."""
    again = (new.content, new.status) != (old.content, old.status)
    names = [name, "remembered"] if again and new.status is not Status.DELETED else [name]
    return [draft.announce(who, one, new, headers) for one in names]


def _columns(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a memory that columns by name change."""
    found = {name: fields[name] for name in _AS_THEY_ARE if name in fields}
    for name, read in _READ.items():
        if name in fields:
            found[name] = None if fields[name] is None else read(fields[name])
    if "tags" in fields:
        found["tags"] = tuple(sorted(set(fields["tags"])))
    if "hash" in fields:
        found["content_hash"] = fields["hash"].removeprefix("\\x")
    return found


def _version(
    memory: Memory,
    known_from: datetime,
    known_to: datetime | None,
    makers: Mapping[int, tuple[str | None, str]],
) -> Version:
    who, why = makers[memory.version]
    return Version(
        memory.version,
        memory.content,
        memory.status.value,
        memory.kind.value,
        memory.key,
        list(memory.tags),
        known_from,
        known_to,
        who,
        why,
    )


def _state(was: Kept) -> dict[str, Any]:
    """The columns of a version by name, as JSON has them."""
    memory = was.memory
    plain = ("scope", *(name for name in _AS_THEY_ARE if name != "content"), "agent", "source")
    return {
        **{name: getattr(memory, name) for name in plain},
        "kind": memory.kind.value,
        "tier": memory.tier.value,
        "hash": "\\x" + memory.content_hash,
        "tags": list(memory.tags),
        "session": _text(memory.session),
        "superseded_by": _text(memory.superseded_by),
        "valid_from": _time(memory.valid_from),
        "valid_to": _time(memory.valid_to),
        "created": _time(memory.created_at),
        "updated": _time(memory.updated_at),
    }


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()
